// flashsim list: what there is.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/views/list_view.hpp"

namespace flashsim {

Result<int> list_command(const std::string& section, const OutputOptions& output) {
  if (auto error = check_section(section)) return *error;
  const auto error = emit(output, {.document = [&] { return list_document(section); },
                                   .json = [&] { return list_json(section); },
                                   .csv = [&] { return list_csv(section); }});
  if (error) return *error;
  return kDone;
}

}  // namespace flashsim
