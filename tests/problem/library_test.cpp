#include "core/problem/library.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using test::message_of;

TEST_CASE("built-in data is found by name, without its ending") {
  const auto found = find_data("GPU", "machines", "h200");
  REQUIRE(found);
  CHECK(found->source == "h200");
  CHECK(found->text.find("\"h200\"") != std::string::npos);
}

TEST_CASE("names belong to one folder") {
  const auto machines = built_in_names("machines");
  CHECK(std::count(machines.begin(), machines.end(), "a100") == 1);
  CHECK(std::count(machines.begin(), machines.end(), "gpt2") == 0);
  CHECK(message_of(find_data("GPU", "machines", "gpt2")) == "unknown GPU 'gpt2'");
  CHECK(built_in_names("nothing").empty());
}

TEST_CASE("what has a slash or ends in .json is a file, and is named in quotes") {
  const test::TemporaryFolder folder;
  for (const char* name : {"mine.json", "mine"}) {
    const std::string path = folder.file(name, "some text");
    const auto found = find_data("GPU", "machines", path);
    REQUIRE(found);
    CHECK(found->source == "'" + path + "'");
    CHECK(found->text == "some text");
  }
}

TEST_CASE("a file that isn't there is an error with its path") {
  CHECK(message_of(find_data("GPU", "machines", "missing.json")) ==
        "can't read 'missing.json': No such file or directory");
  CHECK(message_of(find_data("GPU", "machines", "./a100")) ==
        "can't read './a100': No such file or directory");
}

}  // namespace
}  // namespace flashsim
