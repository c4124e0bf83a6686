#include "app/add_option.hpp"

namespace flashsim {

CLI::Option* add_text(CLI::App& app, const std::string& name, std::optional<std::string>& value,
                      const std::string& help) {
  const auto take = [&value, name](const std::string& text) {
    if (text.starts_with("--")) throw CLI::ArgumentMismatch(name + ": " + text);
    value = text;
  };
  return app.add_option_function<std::string>(name, take, help)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_switch(CLI::App& app, const std::string& name, bool& value, const std::string& help) {
  return app.add_flag(name, value, help)->disable_flag_override();
}

}  // namespace flashsim
