// The two kinds of options that every command's list is made of.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace flashsim {

/// A text option that may be given once or several times, of which the last counts. The next option is
/// no value.
CLI::Option* add_text(CLI::App& app, const std::string& name, std::optional<std::string>& value,
                      const std::string& help);

/// A switch, which takes no value.
CLI::Option* add_switch(CLI::App& app, const std::string& name, bool& value, const std::string& help);

}  // namespace flashsim
