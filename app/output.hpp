// Where a command's result goes and in which form. Every command has the same --format and --out.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/base/result.hpp"

namespace flashsim {

struct OutputOptions {
  std::string format = "table";
  std::optional<std::string> file;
};

/// One report in each of its forms; the one that is asked for is made.
struct Forms {
  std::function<Document()> document;  ///< table and markdown
  std::function<nlohmann::ordered_json()> json;
  std::function<CsvTable()> csv;
};

/// The known format of that name. Errors: unknown.
Outcome check_format(const std::string& format);

/// Writes the report to standard output, or to the file, whole or not at all.
Outcome emit(const OutputOptions& options, const Forms& forms);

/// error: … and hint: … on standard error.
void print_error(const Error& error);

}  // namespace flashsim
