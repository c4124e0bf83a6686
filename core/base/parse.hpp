// Text into numbers, with the error messages that the command line and the files share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/units.hpp"

namespace flashsim {

/// The largest size of any dimension: index arithmetic on such sizes can't overflow.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;

/// A whole number from 1 to kLargestDimension. `name` is what the error calls it: "--seq".
Result<std::int64_t> parse_dimension(std::string_view name, std::string_view text);

/// The same check for a number that was read as one.
Result<std::int64_t> check_dimension(std::string_view name, std::int64_t value);

/// A whole number from `least` to `most`.
Result<std::int64_t> parse_whole(std::string_view name, std::string_view text, std::int64_t least,
                                 std::int64_t most);

/// A finite number.
Result<double> parse_finite(std::string_view name, std::string_view text);

/// A size of at least one byte: 65536, 192KiB, 1.5 MiB, 2GiB.
Result<Bytes> parse_size(std::string_view name, std::string_view text);

}  // namespace flashsim
