#include "core/base/npy.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "core/base/file.hpp"
#include "core/base/parse.hpp"

namespace flashsim {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
/// What version 1.0 can say. Longer ones describe structured types.
constexpr std::size_t kLongestHeader = 65535;
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

constexpr std::string_view kTypesRead = "float16, float32 or float64 are read";

/// The start of a text from a file, fit for one line of a message.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string line(text.substr(0, kMost));
  for (char& c : line) {
    if (c < 0x20 || c > 0x7E) c = '?';
  }
  return text.size() > kMost ? line + "..." : line;
}

/// (2, 3) or (2,)
std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/// What the dictionary of a header says.
struct Dictionary {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the one kind of dictionary that a header is, in Python's notation.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  /// The dictionary, or nothing and a reason for refusal().
  std::optional<Dictionary> read() {
    Dictionary dictionary;
    if (read_items(dictionary)) return dictionary;
    return std::nullopt;
  }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  bool read_items(Dictionary& dictionary) {
    if (!take('{')) return wrong("'{'");
    std::set<std::string> seen;
    while (!take('}')) {
      std::string key;
      if (!read_text(key)) return wrong("a key in quotes");
      if (!take(':')) return wrong("':'");
      if (!seen.insert(key).second) return refuse(fmt::format("'{}' stands twice in its header", key));
      if (key == "descr") {
        if (!read_type(dictionary.descr)) return false;
      } else if (key == "fortran_order") {
        if (!read_flag(dictionary.fortran_order)) return wrong("True or False");
      } else if (key == "shape") {
        if (!read_shape(dictionary.shape)) return false;
      } else {
        return refuse(
            fmt::format("its header has an unknown key '{}'; 'descr', 'fortran_order' and 'shape' are known",
                        shown(key)));
      }
      if (take(',')) continue;
      if (!take('}')) return wrong("',' or '}'");
      break;
    }
    skip_spaces();
    if (at_ != text_.size()) return wrong("nothing more");
    for (const char* key : {"descr", "fortran_order", "shape"}) {
      if (!seen.contains(key)) return refuse(fmt::format("its header has no '{}'", key));
    }
    return true;
  }

  /// A text in single or double quotes. What is read here never needs an escape.
  bool read_text(std::string& text) {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    text = text_.substr(at_ + 1, end - at_ - 1);
    if (text.find_first_of("\\\n\r") != std::string::npos) return false;
    at_ = end + 1;
    return true;
  }

  bool read_type(std::string& descr) {
    skip_spaces();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      return refuse(fmt::format("it is of a structured type; {}", kTypesRead));
    }
    return read_text(descr) || wrong("a type in quotes");
  }

  bool read_flag(bool& flag) {
    skip_spaces();
    flag = text_.substr(at_).starts_with("True");
    if (!flag && !text_.substr(at_).starts_with("False")) return false;
    at_ += flag ? 4 : 5;
    return true;
  }

  bool read_shape(std::vector<std::int64_t>& shape) {
    if (!take('(')) return wrong("a shape in parentheses");
    while (!take(')')) {
      std::int64_t size = 0;
      if (!read_size(size)) return false;
      shape.push_back(size);
      if (take(',')) continue;
      // (5) is a number to Python, and no tuple.
      if (shape.size() == 1) return wrong("','");
      if (!take(')')) return wrong("',' or ')'");
      break;
    }
    return true;
  }

  bool read_size(std::int64_t& size) {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    const std::string_view digits = rest.substr(0, static_cast<std::size_t>(end - rest.data()));
    if (problem == std::errc::invalid_argument || (digits.size() > 1 && digits[0] == '0')) {
      return wrong("a whole number");
    }
    if (problem != std::errc() || size < 1 || size > kLargestDimension) {
      return refuse(fmt::format("its shape has the size {}; sizes from 1 to {} are read", shown(digits),
                                kLargestDimension));
    }
    at_ += digits.size();
    return true;
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\n\r\f", at_), text_.size()); }

  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool wrong(std::string_view wanted) {
    return refuse(
        fmt::format("its header goes wrong at character {}, where {} should stand", at_ + 1, wanted));
  }
  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string refusal_;
};

constexpr bool kBigEndianHere = std::endian::native == std::endian::big;

/// '<f4', '>f4', and '=f4' and 'f4' for the order of the machine.
std::optional<NumberType> type_named(std::string_view descr, bool& big_endian) {
  big_endian = descr.starts_with('>') || (!descr.starts_with('<') && kBigEndianHere);
  if (descr.find_first_of("<>=") == 0) descr.remove_prefix(1);
  if (descr == "f2") return NumberType::fp16;
  if (descr == "f4") return NumberType::fp32;
  if (descr == "f8") return NumberType::fp64;
  return std::nullopt;
}

std::optional<std::array<std::int64_t, 4>> sizes_of(std::span<const std::int64_t> shape, NpyRow row) {
  const std::size_t most = row == NpyRow::vector ? 4 : 3;
  if (shape.size() > most || shape.size() + 2 < most) return std::nullopt;
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
  std::copy(shape.begin(), shape.end(), sizes.begin() + static_cast<std::ptrdiff_t>(most - shape.size()));
  return sizes;
}

std::string_view dimensions_read(NpyRow row) {
  return row == NpyRow::vector ? "[N, d], [H, N, d] or [B, H, N, d]" : "[N], [H, N] or [B, H, N]";
}

/// Bytes of that many elements, or nothing where 63 bits don't hold them.
std::optional<std::int64_t> bytes_of(std::span<const std::int64_t> sizes, std::int64_t element) {
  std::int64_t bytes = element;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::uint32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  return value;
}

Result<NpyHeader> header_of(const PartwiseFile& file, const std::string& path, NpyRow row) {
  const auto refuse = [&](std::string_view why, std::string hint = "") {
    return file_error("read", path, why, std::move(hint));
  };
  const auto length = [&](std::size_t bytes) { return static_cast<std::int64_t>(bytes); };
  // Magic text, version, and the length of the dictionary in two or four bytes.
  std::array<std::byte, 12> start{};
  const auto there = static_cast<std::size_t>(std::min(file.size(), length(start.size())));
  if (auto error = file.read(0, std::span(start).first(there))) return *error;
  if (there < kMagic.size() || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0) {
    return refuse("it isn't an .npy file", "numpy.save writes one; an .npz archive must be unpacked");
  }
  const Error ends_early = refuse(fmt::format("it ends within its header, after {} bytes", file.size()));
  if (there < 8) return ends_early;
  const auto major = std::to_integer<int>(start[6]);
  const auto minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return refuse(fmt::format("its version is {}.{}; 1.0, 2.0 and 3.0 are read", major, minor));
  }
  const std::size_t before = major == 1 ? 10 : 12;
  if (there < before) return ends_early;
  const std::size_t size = little_endian(std::span(start).first(before).subspan(8));
  if (size > kLongestHeader) {
    return refuse(fmt::format("its header is {} bytes long; up to {} are read", size, kLongestHeader));
  }
  NpyHeader header{.offset = length(before + size)};
  if (file.size() < header.offset) return ends_early;
  std::string text(size, '\0');
  if (auto error = file.read(length(before), std::as_writable_bytes(std::span(text)))) return *error;

  DictionaryReader reader(text);
  auto dictionary = reader.read();
  if (!dictionary) return refuse(reader.refusal());
  const auto type = type_named(dictionary->descr, header.big_endian);
  if (!type) {
    return refuse(fmt::format("it is of type '{}'; {}", shown(dictionary->descr), kTypesRead),
                  "array.astype(numpy.float32) converts it");
  }
  header.type = *type;
  header.fortran_order = dictionary->fortran_order;
  header.shape = std::move(dictionary->shape);
  const std::string shape = shown(shape_text(header.shape));
  const auto sizes = sizes_of(header.shape, row);
  if (!sizes) return refuse(fmt::format("its shape is {}; {} is read", shape, dimensions_read(row)));
  header.sizes = *sizes;
  // Whatever the file's type, it is read as float64 at most.
  if (!bytes_of(*sizes, size_of(NumberType::fp64))) {
    return refuse(fmt::format("its shape is {}: more bytes than 63 bits can count", shape));
  }
  const std::int64_t said = bytes_of(*sizes, size_of(header.type)).value();
  const std::int64_t held = file.size() - header.offset;
  if (said != held) {
    return refuse(fmt::format("its shape {} of '{}' takes {} bytes, but {} follow the header", shape,
                              dictionary->descr, said, held));
  }
  return header;
}

std::uint16_t swapped(std::uint16_t bits) { return __builtin_bswap16(bits); }
std::uint32_t swapped(std::uint32_t bits) { return __builtin_bswap32(bits); }
std::uint64_t swapped(std::uint64_t bits) { return __builtin_bswap64(bits); }

/// binary16: 1 sign bit, 5 exponent bits, 10 fraction bits. Every one of them is a float.
float number_of(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1Fu;
  const std::uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
  }
  constexpr std::uint32_t kBias = 127 - 15;
  const std::uint32_t widened = exponent == 0x1F ? 0xFF : exponent + kBias;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}
float number_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
double number_of(std::uint64_t bits) { return std::bit_cast<double>(bits); }

/// How the numbers of a file are read: `Bits` wide, their bytes turned round or not.
template <class Bits, bool kSwap>
struct Format {
  using Number = decltype(number_of(Bits{}));
  /// A file's bytes are the memory of a Number.
  static constexpr bool kAsInMemory = !kSwap && sizeof(Bits) == sizeof(Number);

  static Number number(const std::byte* bytes) {
    Bits bits{};
    std::memcpy(&bits, bytes, sizeof bits);
    return number_of(kSwap ? swapped(bits) : bits);
  }
};

/// The numbers of a row-major file, `count` of them from `offset` on, into `to`.
template <class Format, class Bits, class T>
Outcome read_in_order(const PartwiseFile& file, std::int64_t offset, std::span<T> to) {
  if constexpr (Format::kAsInMemory && std::is_same_v<typename Format::Number, T>) {
    return file.read(offset, std::as_writable_bytes(to));
  } else {
    std::vector<std::byte> buffer(std::min(kBufferBytes, to.size() * sizeof(Bits)));
    while (!to.empty()) {
      const std::size_t part = std::min(to.size(), buffer.size() / sizeof(Bits));
      const auto bytes = std::span(buffer).first(part * sizeof(Bits));
      if (auto error = file.read(offset, bytes)) return error;
      for (std::size_t i = 0; i < part; ++i) {
        to[i] = static_cast<T>(Format::number(bytes.data() + i * sizeof(Bits)));
      }
      offset += static_cast<std::int64_t>(bytes.size());
      to = to.subspan(part);
    }
    return std::nullopt;
  }
}

/// The numbers of a Fortran-ordered file, from `offset` on. To the file all rows of all heads are one column
/// after the other; blocks of some rows and some columns are gathered and turned round in the cache.
template <class Format, class Bits, class T>
Outcome read_turned(const PartwiseFile& file, std::int64_t offset, Tensor4<T>& tensor) {
  constexpr std::int64_t kMost = kBufferBytes / sizeof(Bits);
  constexpr std::int64_t kColumns = 256;
  const std::int64_t batch = tensor.batch();
  const std::int64_t heads = tensor.heads();
  const std::int64_t rows = batch * heads * tensor.rows();
  const std::int64_t columns = tensor.columns();
  const std::int64_t row_block = std::min(rows, kMost / std::min(columns, kColumns));
  const std::int64_t column_block = std::min(columns, kMost / row_block);
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(Bits));
  std::vector<std::byte> buffer(static_cast<std::size_t>(row_block * column_block * kWidth));
  const auto gather = [&](std::int64_t place, std::int64_t at, std::int64_t count) {
    return file.read(offset + at * kWidth,
                     std::span(buffer).subspan(static_cast<std::size_t>(place * kWidth),
                                               static_cast<std::size_t>(count * kWidth)));
  };
  for (std::int64_t column = 0; column < columns; column += column_block) {
    const std::int64_t wide = std::min(column_block, columns - column);
    for (std::int64_t row = 0; row < rows; row += row_block) {
      const std::int64_t tall = std::min(row_block, rows - row);
      // Whole columns lie one behind the other, parts of them don't.
      if (tall == rows) {
        if (auto error = gather(0, column * rows, wide * rows)) return error;
      } else {
        for (std::int64_t c = 0; c < wide; ++c) {
          if (auto error = gather(c * tall, (column + c) * rows + row, tall)) return error;
        }
      }
      for (std::int64_t r = 0; r < tall; ++r) {
        // Of the row's indices the batch entry varies fastest, then the head.
        const std::int64_t b = (row + r) % batch;
        const std::int64_t h = (row + r) / batch % heads;
        T* to = tensor.matrix(b, h).row((row + r) / batch / heads) + column;
        const std::byte* from = buffer.data() + r * kWidth;
        for (std::int64_t c = 0; c < wide; ++c) {
          to[c] = static_cast<T>(Format::number(from + c * tall * kWidth));
        }
      }
    }
  }
  return std::nullopt;
}

template <class Bits, bool kSwap, class T>
Outcome read_numbers_as(const PartwiseFile& file, const NpyHeader& header, Tensor4<T>& tensor) {
  using Numbers = Format<Bits, kSwap>;
  if (header.fortran_order) return read_turned<Numbers, Bits>(file, header.offset, tensor);
  return read_in_order<Numbers, Bits>(file, header.offset, std::span(tensor.data()));
}

template <class Bits, class T>
Outcome read_numbers(const PartwiseFile& file, const NpyHeader& header, Tensor4<T>& tensor) {
  return header.big_endian == kBigEndianHere ? read_numbers_as<Bits, false>(file, header, tensor)
                                             : read_numbers_as<Bits, true>(file, header, tensor);
}

}  // namespace

Result<NpyHeader> read_npy_header(const std::string& path, NpyRow row) {
  const auto file = PartwiseFile::open(path);
  if (!file) return file.error();
  return header_of(*file, path, row);
}

template <class T>
Result<Tensor4<T>> read_npy(const std::string& path, NpyRow row) {
  const auto file = PartwiseFile::open(path);
  if (!file) return file.error();
  const auto header = header_of(*file, path, row);
  if (!header) return header.error();
  try {
    const auto& [b, h, n, d] = header->sizes;
    Tensor4<T> tensor(b, h, n, d);
    Outcome error;
    switch (header->type) {
      case NumberType::fp16: error = read_numbers<std::uint16_t>(*file, *header, tensor); break;
      case NumberType::fp64: error = read_numbers<std::uint64_t>(*file, *header, tensor); break;
      default: error = read_numbers<std::uint32_t>(*file, *header, tensor); break;
    }
    if (error) return *error;
    return tensor;
  } catch (const std::exception&) {
    // Of std::vector: the file may be real and still larger than the memory.
    return file_error("read", path,
                      fmt::format("its shape {} takes {} bytes of memory, which can't be had",
                                  shape_text(header->shape), *bytes_of(header->shape, sizeof(T))));
  }
}

template <class T>
Outcome write_npy(const std::string& path, const Tensor4<T>& tensor, int dimensions, NpyRow row) {
  const std::array sizes{tensor.batch(), tensor.heads(), tensor.rows(), tensor.columns()};
  const int most = row == NpyRow::vector ? 4 : 3;
  assert(dimensions <= most && dimensions >= most - 2);
  const auto shape = std::span(sizes).subspan(static_cast<std::size_t>(most - dimensions),
                                              static_cast<std::size_t>(dimensions));
  assert(bytes_of(shape, 1) == static_cast<std::int64_t>(tensor.data().size()));
  std::string header = fmt::format("{{'descr': '{}f{}', 'fortran_order': False, 'shape': {}, }}",
                                   kBigEndianHere ? '>' : '<', sizeof(T), shape_text(shape));
  // Filled up with spaces and a line feed, so that the numbers are aligned.
  const std::size_t before = kMagic.size() + 4;
  header.resize((before + header.size() + kAlignment) / kAlignment * kAlignment - before - 1, ' ');
  header += '\n';
  const auto size = static_cast<unsigned>(header.size());
  const std::string version_and_size{'\1', '\0', static_cast<char>(size & 0xFF),
                                     static_cast<char>(size >> 8)};
  header.insert(0, std::string(kMagic) + version_and_size);

  auto file = WholeFile::open(path);
  if (!file) return file.error();
  if (auto error = file->write(std::as_bytes(std::span(header)))) return error;
  if (auto error = file->write(std::as_bytes(std::span(tensor.data())))) return error;
  return file->commit();
}

template Result<Tensor4<float>> read_npy(const std::string&, NpyRow);
template Result<Tensor4<double>> read_npy(const std::string&, NpyRow);
template Outcome write_npy(const std::string&, const Tensor4<float>&, int, NpyRow);
template Outcome write_npy(const std::string&, const Tensor4<double>&, int, NpyRow);

}  // namespace flashsim
