// Files, read whole and written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace flashsim {

/// The bytes of a file. Errors: it can't be opened, is a folder, can't be read.
Result<std::string> read_file(const std::string& path);

/// What would keep write_file from writing to `path`, as far as it can be told beforehand: a missing
/// folder, a folder in its place, no permission. For long work whose result goes there.
Outcome check_writable(const std::string& path);

/// Writes `text` to `path` by way of a temporary file beside it that is renamed when complete, so
/// that a reader sees the old file or the new one, never a part. What isn't a regular file (a pipe,
/// /dev/null) is written to directly.
Outcome write_file(const std::string& path, std::string_view text);

}  // namespace flashsim
