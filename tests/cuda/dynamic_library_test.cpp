#include <array>
#include <string>
#include <utility>

#include "cuda/library/dynamic_library.hpp"
#include "tests/catch.hpp"

using flashsim::DynamicLibrary;

namespace {

constexpr std::array kLibC{"libflashsim-nowhere.so", "libc.so.6"};

}  // namespace

TEST_CASE("the first library that opens is taken, and its functions can be called") {
  std::string why_not;
  const auto library = DynamicLibrary::open(kLibC, why_not);
  REQUIRE(library);
  CHECK(why_not.empty());
  auto* absolute = library->function<int(int)>("abs");
  REQUIRE(absolute != nullptr);
  CHECK(absolute(-7) == 7);
}

TEST_CASE("a function that a library lacks is null") {
  std::string why_not;
  const auto library = DynamicLibrary::open(kLibC, why_not);
  REQUIRE(library);
  CHECK(library->function<int(int)>("flashsim_has_no_such_function") == nullptr);
}

TEST_CASE("where no library opens, each that was tried is named on one line") {
  constexpr std::array names{"libflashsim-nowhere.so", "/nowhere/libflashsim.so"};
  std::string why_not;
  CHECK_FALSE(DynamicLibrary::open(names, why_not));
  CHECK(why_not.find(names[0]) != std::string::npos);
  CHECK(why_not.find(names[1]) != std::string::npos);
  CHECK(why_not.find('\n') == std::string::npos);
}

TEST_CASE("names that are absent are passed over") {
  std::string why_not;
  const std::array<const char*, 3> names{nullptr, "", "libc.so.6"};
  CHECK(DynamicLibrary::open(names, why_not));
  CHECK_FALSE(DynamicLibrary::open(std::span(names).first(2), why_not));
  CHECK(why_not == "no library was named");
}

TEST_CASE("a library that is moved stays open, and is closed with its last owner") {
  std::string why_not;
  auto first = DynamicLibrary::open(kLibC, why_not);
  REQUIRE(first);
  DynamicLibrary second = std::move(*first);
  CHECK(second.function<int(int)>("abs") != nullptr);
  auto third = DynamicLibrary::open(kLibC, why_not);
  REQUIRE(third);
  *third = std::move(second);
  CHECK(third->function<int(int)>("abs") != nullptr);
}
