// How a KV cache looks beside what a call makes and drops again.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/cache.hpp"

namespace flashsim {

Document cache_document(const CacheReport& report, bool explain);

/// One line a figure: section, item, quantity, value.
CsvTable cache_csv(const CacheReport& report, bool explain);

}  // namespace flashsim
