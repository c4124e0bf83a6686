// How a replay looks: the standard way, then the tiled way step by step, then both against the truth.
#pragma once

#include <string>
#include <vector>

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/replay.hpp"

namespace flashsim {

/// The replay in pieces that make sense alone, for showing one after another.
std::vector<Document> replay_pages(const ReplayReport& report);

/// One line a recorded number.
CsvTable replay_csv(const ReplayReport& report);

}  // namespace flashsim
