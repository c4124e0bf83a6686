// What there is: algorithms, machines, models, scenarios, switches, faults, kernels, devices.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/base/result.hpp"

namespace flashsim {

/// The sections that `flashsim list` can be narrowed to. Errors: an unknown section.
Outcome check_section(const std::string& section);

/// Empty `section`: all but the devices, which need the driver to be asked.
Document list_document(const std::string& section);
nlohmann::ordered_json list_json(const std::string& section);
CsvTable list_csv(const std::string& section);

}  // namespace flashsim
