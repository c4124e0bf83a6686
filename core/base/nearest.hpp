// "Did you mean": the known name that is nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace flashsim {

/// The name with the fewest edits (insert, delete, replace, swap neighbours), capitals aside; empty when none
/// is near.
std::string nearest_name(std::string_view given, const std::vector<std::string>& known);

/// error: unknown <what> '<given>' / hint: did you mean '<nearest>'? known: a, b, c
Error unknown_name(std::string_view what, std::string_view given, const std::vector<std::string>& known);

}  // namespace flashsim
