// How the HBM traffic behind the L2 and the predicted time look.
#pragma once

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/account.hpp"

namespace flashsim {

/// What --machine adds to an account; nothing where it wasn't asked for.
void add_machine(const AccountReport& report, Document& document);
void add_machine_rows(const AccountReport& report, CsvTable& table);

}  // namespace flashsim
