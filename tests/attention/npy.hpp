// NumPy's .npy files, as far as the test data needs them: format 1.0, float64, little-endian, row-major.
// Anything else is refused.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.hpp"

namespace flashsim::test {

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// The array in the bytes of a file. `source` is what errors call it. Throws std::runtime_error.
inline NpyArray parse_npy(std::string_view bytes, const std::string& source) {
  static_assert(std::endian::native == std::endian::little);
  const auto require = [&](bool met, const char* what) {
    if (!met) throw std::runtime_error(source + ": " + what);
  };
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
  require(bytes.substr(0, 8) == kMagic && bytes.size() >= 10, "not an .npy file of format 1.0");
  const auto byte = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at]));
  };
  const std::size_t start = 10 + byte(8) + 256 * byte(9);
  require(bytes.size() >= start, "the header is cut short");
  const std::string_view header = bytes.substr(10, start - 10);
  require(header.find("'descr': '<f8'") != std::string_view::npos, "not little-endian float64");
  require(header.find("'fortran_order': False") != std::string_view::npos, "not row-major");
  constexpr std::string_view kShape = "'shape': (";
  std::size_t at = header.find(kShape);
  require(at != std::string_view::npos, "no shape");
  NpyArray array;
  std::size_t elements = 1;
  for (at += kShape.size(); at < header.size() && header[at] != ')';) {
    if (header[at] == ',' || header[at] == ' ') {
      ++at;
      continue;
    }
    std::int64_t length = 0;
    for (; at < header.size() && header[at] >= '0' && header[at] <= '9'; ++at)
      length = 10 * length + header[at] - '0';
    require(length > 0, "a shape that can't be read");
    array.shape.push_back(length);
    elements *= static_cast<std::size_t>(length);
  }
  require(bytes.size() - start == 8 * elements, "more or fewer elements than the shape says");
  array.values.resize(elements);
  std::memcpy(array.values.data(), bytes.data() + start, 8 * elements);
  return array;
}

inline NpyArray read_npy(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) throw std::runtime_error(bytes.error().message);
  return parse_npy(*bytes, path);
}

}  // namespace flashsim::test
