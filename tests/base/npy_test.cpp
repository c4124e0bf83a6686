#include "core/base/npy.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/base/file.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::message_of;
using test::TemporaryFolder;

/// A file of that dictionary, in version `major`.0.
std::string npy_file(std::string_view dictionary, std::string_view data, int major = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(dictionary.size() >> 8 * i & 0xFF);
  return file.append(dictionary).append(data);
}

std::string dictionary(std::string_view descr, bool fortran_order, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr,
                     fortran_order ? "True" : "False", shape);
}

/// The bytes of some numbers, turned round on request.
template <class Bits>
std::string bytes_of(const std::vector<Bits>& numbers, bool big_endian = false) {
  std::string bytes;
  for (const Bits& number : numbers) {
    char part[sizeof(Bits)];
    std::memcpy(part, &number, sizeof part);
    std::string text(part, sizeof part);
    if (big_endian == (std::endian::native == std::endian::little)) text.assign(text.rbegin(), text.rend());
    bytes += text;
  }
  return bytes;
}

template <class T>
Tensor4<T> random_tensor(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
  Tensor4<T> tensor(b, h, n, d);
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (T& value : tensor.data()) value = static_cast<T>(normal(random));
  return tensor;
}

template <class T>
std::vector<std::int64_t> sizes_of(const Tensor4<T>& tensor) {
  return {tensor.batch(), tensor.heads(), tensor.rows(), tensor.columns()};
}

/// The numbers of a tensor with the first index varying fastest.
template <class T>
std::vector<T> in_fortran_order(const Tensor4<T>& tensor) {
  std::vector<T> numbers;
  numbers.reserve(tensor.data().size());
  for (std::int64_t d = 0; d < tensor.columns(); ++d) {
    for (std::int64_t n = 0; n < tensor.rows(); ++n) {
      for (std::int64_t h = 0; h < tensor.heads(); ++h) {
        for (std::int64_t b = 0; b < tensor.batch(); ++b) numbers.push_back(tensor.matrix(b, h)(n, d));
      }
    }
  }
  return numbers;
}

TEMPLATE_TEST_CASE("a tensor reads back bit for bit as it was written", "", float, double) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  const auto check = [&](const Tensor4<TestType>& tensor, int dimensions, NpyRow row,
                         const std::vector<std::int64_t>& shape) {
    REQUIRE(message_of(write_npy(path, tensor, dimensions, row)) == test::kNoError);
    const auto header = read_npy_header(path, row);
    REQUIRE(message_of(header) == test::kNoError);
    CHECK(header->shape == shape);
    CHECK(std::vector<std::int64_t>(header->sizes.begin(), header->sizes.end()) == sizes_of(tensor));
    CHECK(size_of(header->type) == sizeof(TestType));
    CHECK_FALSE(header->fortran_order);
    const auto read = read_npy<TestType>(path, row);
    REQUIRE(message_of(read) == test::kNoError);
    CHECK(sizes_of(*read) == sizes_of(tensor));
    CHECK(read->data() == tensor.data());
  };
  check(random_tensor<TestType>(2, 3, 5, 7), 4, NpyRow::vector, {2, 3, 5, 7});
  check(random_tensor<TestType>(1, 3, 5, 7), 4, NpyRow::vector, {1, 3, 5, 7});
  check(random_tensor<TestType>(1, 3, 5, 7), 3, NpyRow::vector, {3, 5, 7});
  check(random_tensor<TestType>(1, 1, 5, 7), 2, NpyRow::vector, {5, 7});
  check(random_tensor<TestType>(2, 3, 5, 1), 4, NpyRow::vector, {2, 3, 5, 1});
  check(random_tensor<TestType>(2, 3, 5, 1), 3, NpyRow::number, {2, 3, 5});
  check(random_tensor<TestType>(1, 3, 5, 1), 2, NpyRow::number, {3, 5});
  check(random_tensor<TestType>(1, 1, 5, 1), 1, NpyRow::number, {5});
  CHECK(folder.names() == std::vector<std::string>{"a.npy"});
}

TEST_CASE("what is written is version 1.0, and its numbers are aligned to 64 bytes") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  const std::string order = std::endian::native == std::endian::little ? "<" : ">";
  // The longer the size, the less there is to fill up.
  for (const std::int64_t n : {1, 10, 100, 1000, 10'000, 100'000, 1'000'000}) {
    REQUIRE(message_of(write_npy(path, Tensor4<float>(1, 1, n, 2), 2)) == test::kNoError);
    const std::string bytes = read_file(path).value();
    const auto start = bytes.size() - static_cast<std::size_t>(8 * n);
    CHECK(start % 64 == 0);
    CHECK(bytes.substr(0, 8) == std::string("\x93NUMPY\1\0", 8));
    CHECK(bytes[start - 1] == '\n');
    const std::string said =
        fmt::format("{{'descr': '{}f4', 'fortran_order': False, 'shape': ({}, 2), }}", order, n);
    CHECK(bytes.substr(10, said.size()) == said);
    CHECK(bytes.find_first_not_of(' ', 10 + said.size()) == start - 1);
  }
}

TEST_CASE("a tensor that can't be written leaves the old file") {
  const TemporaryFolder folder;
  const std::string path = folder / "missing/a.npy";
  const Tensor4<float> tensor(1, 1, 2, 2);
  CHECK(message_of(write_npy(path, tensor, 2)) == "can't write '" + path + "': No such file or directory");
  CHECK(message_of(write_npy("/dev/full", tensor, 2)) == "can't write '/dev/full': No space left on device");
}

TEST_CASE("elements are rounded to the type that is asked for, ties to even") {
  const TemporaryFolder folder;
  const double tie = 1 + 0x1p-24;
  const std::vector<double> numbers{tie, tie + 0x1p-23, 1e300, -1e-300, 0.1, -0.0};
  const std::string path =
      folder.file("a.npy", npy_file(dictionary("<f8", false, "(3, 2)"), bytes_of(numbers)));
  const auto read = read_npy<float>(path);
  REQUIRE(message_of(read) == test::kNoError);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(read->data() == std::vector<float>{1.0f, 1 + 0x1p-22f, kInfinity, 0.0f, 0.1f, 0.0f});
  CHECK(std::signbit(read->data()[3]));
  CHECK(std::signbit(read->data()[5]));
  CHECK(read_npy<double>(path)->data() == numbers);
}

TEMPLATE_TEST_CASE("every float16 is read as the number that it is", "", float, double) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const bool big_endian : {false, true}) {
    const auto descr = big_endian ? ">f2" : "<f2";
    const std::string path =
        folder.file("a.npy", npy_file(dictionary(descr, false, "(256, 256)"), bytes_of(all, big_endian)));
    const auto read = read_npy<TestType>(path);
    REQUIRE(message_of(read) == test::kNoError);
    std::vector<std::uint16_t> wrong;
    for (const std::uint16_t bits : all) {
      const int exponent = bits >> 10 & 31;
      const int fraction = bits & 1023;
      const double size = exponent == 0   ? std::ldexp(fraction, -24)
                          : exponent < 31 ? std::ldexp(1024 + fraction, exponent - 25)
                          : fraction == 0 ? std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
      const TestType got = read->data()[bits];
      const bool same = std::isnan(size) ? std::isnan(got) : std::fabs(got) == size;
      if (!same || std::signbit(got) != (bits >= 0x8000)) wrong.push_back(bits);
    }
    CHECK(wrong.empty());
  }
}

TEST_CASE("both byte orders are read, and that of the machine where none is named") {
  const TemporaryFolder folder;
  const std::vector<float> floats{1.5f, -2.25f, 1e-40f, 3e38f};
  const std::vector<double> doubles{1.5, -2.25, 1e-310, 3e300};
  const bool big = std::endian::native == std::endian::big;
  const auto check = [&](const std::string& order, bool big_endian) {
    INFO(order);
    const std::string f4 = folder.file(
        "f4.npy", npy_file(dictionary(order + "f4", false, "(2, 2)"), bytes_of(floats, big_endian)));
    const std::string f8 = folder.file(
        "f8.npy", npy_file(dictionary(order + "f8", true, "(2, 2)"), bytes_of(doubles, big_endian)));
    CHECK(read_npy<float>(f4)->data() == floats);
    CHECK(read_npy<double>(f4)->data() == std::vector<double>(floats.begin(), floats.end()));
    CHECK(read_npy<double>(f8)->data() == std::vector<double>{1.5, 1e-310, -2.25, 3e300});
    CHECK(read_npy_header(f4)->big_endian == big_endian);
  };
  check("<", false);
  check(">", true);
  check("=", big);
  check("", big);
}

TEST_CASE("a Fortran-ordered file is the same tensor") {
  const TemporaryFolder folder;
  const auto check = [&](std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d, NpyRow row,
                         const std::string& shape) {
    INFO(shape);
    const Tensor4<float> tensor = random_tensor<float>(b, h, n, d);
    const std::string path =
        folder.file("a.npy", npy_file(dictionary("<f4", true, shape), bytes_of(in_fortran_order(tensor))));
    REQUIRE(message_of(read_npy_header(path, row)) == test::kNoError);
    CHECK(read_npy_header(path, row)->fortran_order);
    const auto read = read_npy<float>(path, row);
    CHECK(sizes_of(*read) == sizes_of(tensor));
    CHECK(read->data() == tensor.data());
    CHECK(read_npy<double>(path, row)->data() == converted_tensor<double>(tensor).data());
  };
  check(2, 3, 5, 7, NpyRow::vector, "(2, 3, 5, 7)");
  check(1, 3, 5, 7, NpyRow::vector, "(3, 5, 7)");
  check(1, 1, 5, 7, NpyRow::vector, "(5, 7)");
  check(2, 3, 5, 1, NpyRow::number, "(2, 3, 5)");
  // Larger than what is turned round at once, in both directions, and ragged.
  check(2, 3, 1501, 301, NpyRow::vector, "(2, 3, 1501, 301)");
  check(1, 1, 3, 400'001, NpyRow::vector, "(3, 400001)");
  check(1, 1, 1'200'001, 1, NpyRow::vector, "(1200001, 1)");
}

TEST_CASE("a file larger than the buffer is converted whole") {
  const TemporaryFolder folder;
  const Tensor4<double> tensor = random_tensor<double>(1, 2, 1003, 701);
  const std::string path = folder / "a.npy";
  REQUIRE(message_of(write_npy(path, tensor, 3)) == test::kNoError);
  CHECK(read_npy<float>(path)->data() == converted_tensor<float>(tensor).data());
}

TEST_CASE("versions 1.0, 2.0 and 3.0 are read") {
  const TemporaryFolder folder;
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  for (int major = 1; major <= 3; ++major) {
    const std::string path =
        folder.file("a.npy", npy_file(dictionary("<f4", false, "(2, 3)"), bytes_of(numbers), major));
    CHECK(message_of(read_npy_header(path)) == test::kNoError);
    CHECK(read_npy<float>(path)->data() == numbers);
  }
}

TEST_CASE("the dictionary may have any order of keys, either quotes, and spaces") {
  const TemporaryFolder folder;
  for (const char* text : {
           "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
           "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}",
           " { 'descr' : \"<f4\" ,\n\t'fortran_order':False,'shape' : ( 2 , 3 , ) , } \n\n",
           "{'fortran_order': False, 'shape': (2, 3,), 'descr': '<f4',}",
       }) {
    INFO(text);
    const std::string path = folder.file("a.npy", npy_file(text, std::string(24, '\0')));
    CHECK(message_of(read_npy_header(path)) == test::kNoError);
  }
}

TEST_CASE("every way in which a file can be wrong is said in one line") {
  const TemporaryFolder folder;
  const auto refusal = [&](std::string_view bytes, NpyRow row = NpyRow::vector) {
    const std::string path = folder.file("a.npy", bytes);
    const std::string start = "can't read '" + path + "': ";
    const std::string message = message_of(read_npy<float>(path, row));
    CHECK(message == message_of(read_npy_header(path, row)));
    CHECK(message == message_of(read_npy<double>(path, row)));
    return message.starts_with(start) ? message.substr(start.size()) : message;
  };
  const std::string zeros(48, '\0');
  const auto of_dictionary = [&](std::string_view text, NpyRow row = NpyRow::vector) {
    return refusal(npy_file(text, zeros), row);
  };
  const auto of_shape = [&](std::string_view shape, NpyRow row = NpyRow::vector) {
    return of_dictionary(dictionary("<f8", false, shape), row);
  };
  const auto of_type = [&](std::string_view descr) {
    return of_dictionary(dictionary(descr, false, "(2, 3)"));
  };
  REQUIRE(of_shape("(2, 3)") == test::kNoError);

  SECTION("files that aren't of the format") {
    for (const char* text : {"", "\x93NUMP", "PK\x03\x04 an archive", "{'descr': '<f4'}"}) {
      CHECK(refusal(text) == "it isn't an .npy file");
    }
    CHECK(hint_of(read_npy<float>(folder / "a.npy")) ==
          "numpy.save writes one; an .npz archive must be unpacked");
    CHECK(refusal(std::string("\x93NUMPY\4\0\0\0\0\0", 12)) ==
          "its version is 4.0; 1.0, 2.0 and 3.0 are read");
    CHECK(refusal(std::string("\x93NUMPY\0\0\0\0\0\0", 12)) ==
          "its version is 0.0; 1.0, 2.0 and 3.0 are read");
    CHECK(refusal(std::string("\x93NUMPY\1\2\0\0\0\0", 12)) ==
          "its version is 1.2; 1.0, 2.0 and 3.0 are read");
    CHECK(refusal(std::string("\x93NUMPY\2\0\xFF\xFF\xFF\xFF", 12)) ==
          "its header is 4294967295 bytes long; up to 65535 are read");
    CHECK(refusal(std::string("\x93NUMPY\2\0\0\0\1\0", 12)) ==
          "its header is 65536 bytes long; up to 65535 are read");
    CHECK(refusal(std::string("\x93NUMPY\2\0\xFF\xFF\0\0", 12)) ==
          "it ends within its header, after 12 bytes");
  }
  SECTION("dictionaries that can't be read") {
    const auto wrong = [](int at, const char* wanted) {
      return fmt::format("its header goes wrong at character {}, where {} should stand", at, wanted);
    };
    CHECK(of_dictionary("") == wrong(1, "'{'"));
    CHECK(of_dictionary("['descr']") == wrong(1, "'{'"));
    CHECK(of_dictionary("{") == wrong(2, "a key in quotes"));
    CHECK(of_dictionary("{,}") == wrong(2, "a key in quotes"));
    CHECK(of_dictionary("{descr: '<f4'}") == wrong(2, "a key in quotes"));
    CHECK(of_dictionary("{'descr\": 1}") == wrong(2, "a key in quotes"));
    CHECK(of_dictionary("{'de\\'scr': 1}") == wrong(2, "a key in quotes"));
    CHECK(of_dictionary("{'descr' '<f4'}") == wrong(10, "':'"));
    CHECK(of_dictionary("{'descr': 4}") == wrong(11, "a type in quotes"));
    CHECK(of_dictionary("{'descr': '<f4' 'shape'") == wrong(17, "',' or '}'"));
    CHECK(of_dictionary("{'descr': '<f4',, }") == wrong(17, "a key in quotes"));
    CHECK(of_dictionary("{'fortran_order': 0}") == wrong(19, "True or False"));
    CHECK(of_dictionary("{'fortran_order': Truer}") == wrong(23, "',' or '}'"));
    CHECK(of_dictionary("{'shape': [2, 3]}") == wrong(11, "a shape in parentheses"));
    CHECK(of_dictionary("{'shape': (x, 3)}") == wrong(12, "a whole number"));
    CHECK(of_dictionary("{'shape': (,)}") == wrong(12, "a whole number"));
    CHECK(of_dictionary("{'shape': (08, 1)}") == wrong(12, "a whole number"));
    CHECK(of_dictionary("{'shape': (2.0, 1)}") == wrong(13, "','"));
    CHECK(of_dictionary("{'shape': (5)}") == wrong(13, "','"));
    CHECK(of_dictionary("{'shape': (2, 3 4)}") == wrong(17, "',' or ')'"));
    CHECK(of_dictionary(dictionary("<f8", false, "(2, 3)") + "x") == wrong(61, "nothing more"));
    CHECK(of_dictionary("{'descr': '<f4', \"descr\": '<f4'}") == "'descr' stands twice in its header");
    CHECK(of_dictionary("{'order\n': 1}") == wrong(2, "a key in quotes"));
    CHECK(of_dictionary("{'ord\t\xC3\xA9': 1}") ==
          "its header has an unknown key 'ord\?\?\?'; 'descr', 'fortran_order' and 'shape' are known");
    CHECK(of_dictionary("{'" + std::string(100, 'k') + "': 1}") ==
          "its header has an unknown key '" + std::string(60, 'k') +
              "...'; 'descr', 'fortran_order' and 'shape' are known");
    CHECK(of_dictionary("{}") == "its header has no 'descr'");
    CHECK(of_dictionary("{'descr': '<f4', 'shape': (2, 3)}") == "its header has no 'fortran_order'");
    CHECK(of_dictionary("{'descr': '<f4', 'fortran_order': True, }") == "its header has no 'shape'");
  }
  SECTION("types that aren't read") {
    for (const std::string descr : {"<i8", "|V2", "<c8", "|b1", "|f4", "<f16", "<<f4", "<", "", "float32"}) {
      CHECK(of_type(descr) == "it is of type '" + descr + "'; float16, float32 or float64 are read");
    }
    CHECK(hint_of(read_npy<float>(folder / "a.npy")) == "array.astype(numpy.float32) converts it");
    CHECK(
        of_dictionary("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (2, 3), }") ==
        "it is of a structured type; float16, float32 or float64 are read");
    CHECK(of_dictionary("{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (2, 3), }") ==
          "it is of a structured type; float16, float32 or float64 are read");
  }
  SECTION("shapes that aren't read") {
    const std::string vectors = "; [N, d], [H, N, d] or [B, H, N, d] is read";
    CHECK(of_shape("()") == "its shape is ()" + vectors);
    CHECK(of_shape("(6,)") == "its shape is (6,)" + vectors);
    CHECK(of_shape("(1, 1, 1, 2, 3)") == "its shape is (1, 1, 1, 2, 3)" + vectors);
    CHECK(of_shape("(1, 1, 2, 3)", NpyRow::number) ==
          "its shape is (1, 1, 2, 3); [N], [H, N] or [B, H, N] is read");
    CHECK(of_shape("()", NpyRow::number) == "its shape is (); [N], [H, N] or [B, H, N] is read");
    CHECK(of_shape("(0, 3)") == "its shape has the size 0; sizes from 1 to 1099511627776 are read");
    CHECK(of_shape("(2, -3)") == "its shape has the size -3; sizes from 1 to 1099511627776 are read");
    CHECK(of_shape("(2, 1099511627777)") ==
          "its shape has the size 1099511627777; sizes from 1 to 1099511627776 are read");
    CHECK(of_shape("(2, 99999999999999999999)") ==
          "its shape has the size 99999999999999999999; sizes from 1 to 1099511627776 are read");
    CHECK(of_shape("(1099511627776, 1099511627776)") ==
          "its shape is (1099511627776, 1099511627776): more bytes than 63 bits can count");
    CHECK(of_shape("(1099511627776, 1048576)") ==
          "its shape is (1099511627776, 1048576): more bytes than 63 bits can count");
  }
  SECTION("files shorter or longer than their shape") {
    CHECK(of_shape("(2, 4)") == "its shape (2, 4) of '<f8' takes 64 bytes, but 48 follow the header");
    CHECK(of_shape("(1, 2, 2)") == "its shape (1, 2, 2) of '<f8' takes 32 bytes, but 48 follow the header");
    CHECK(of_shape("(1099511627776, 1)") ==
          "its shape (1099511627776, 1) of '<f8' takes 8796093022208 bytes, but 48 follow the header");
  }
}

TEST_CASE("what isn't a regular file is refused as a tensor, and never waited for") {
  const TemporaryFolder folder;
  const std::string missing = folder / "missing.npy";
  CHECK(message_of(read_npy<float>(missing)) == "can't read '" + missing + "': No such file or directory");
  CHECK(message_of(read_npy<float>(folder.path())) ==
        "can't read '" + folder.path().string() + "': Is a directory");
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(message_of(read_npy_header(pipe)) == "can't read '" + pipe + "': it isn't a regular file");
  CHECK(message_of(read_npy<double>("/dev/zero")) == "can't read '/dev/zero': it isn't a regular file");
}

TEST_CASE("a file that ends too early anywhere is refused") {
  const TemporaryFolder folder;
  for (int major = 1; major <= 3; ++major) {
    const std::string whole = npy_file(dictionary("<f4", false, "(1, 1)"), std::string(4, '\0'), major);
    const std::size_t data = whole.size() - 4;
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const std::string path = folder.file("a.npy", whole.substr(0, length));
      const std::string why =
          length < 6      ? "it isn't an .npy file"
          : length < data ? fmt::format("it ends within its header, after {} bytes", length)
                          : fmt::format("its shape (1, 1) of '<f4' takes 4 bytes, but {} follow the header",
                                        length - data);
      CHECK(message_of(read_npy<float>(path)) == "can't read '" + path + "': " + why);
    }
    const std::string path = folder.file("a.npy", whole);
    CHECK(message_of(read_npy<float>(path)) == test::kNoError);
  }
}

TEST_CASE("a damaged header gives a tensor or one line, never a crash") {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  // Half of the damage is with characters that mean something.
  constexpr std::string_view kTelling = "{}()[]'\",: <>=|fV0123456789-TFL\n\\";
  int refused = 0;
  constexpr int kTimes = 4000;
  for (int i = 0; i < kTimes; ++i) {
    std::string bytes =
        npy_file(dictionary("<f4", i % 2 == 0, "(2, 1, 2, 3)"), std::string(48, '\1'), 1 + i % 3);
    const std::size_t header = bytes.size() - 48;
    for (std::size_t flips = 1 + below(3); flips > 0; --flips) {
      char& c = bytes[below(header)];
      c = below(2) == 0 ? kTelling[below(kTelling.size())] : static_cast<char>(c ^ 1 << below(8));
    }
    const auto read = read_npy<double>(folder.file("a.npy", bytes));
    if (read.ok()) continue;
    ++refused;
    const std::string& message = read.error().message;
    REQUIRE(message.starts_with("can't read '"));
    REQUIRE(message.find_first_of("\n\r") == std::string::npos);
    REQUIRE(message.size() < 300);
  }
  CHECK(refused > kTimes / 2);
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a tensor larger than the memory is an error") {
  const TemporaryFolder folder;
  const std::string text = dictionary("<f4", false, "(1048576, 4096)");
  const std::string path = folder.file("a.npy", npy_file(text, ""));
  std::error_code problem;
  std::filesystem::resize_file(path, 10 + text.size() + (std::uintmax_t{16} << 30), problem);
  if (problem) {
    WARN("skipped: no sparse files here");
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
    ::setrlimit(RLIMIT_AS, &limit);
    const std::string wanted =
        "can't read '" + path +
        "': its shape (1048576, 4096) takes 17179869184 bytes of memory, which can't be had";
    ::_exit(message_of(read_npy<float>(path)) == wanted ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif

}  // namespace
}  // namespace flashsim
