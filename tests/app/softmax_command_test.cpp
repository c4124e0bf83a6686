// flashsim softmax from the outside: its forms, its repeat and what it refuses.
#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/app/json_schema.hpp"
#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::read_whole;
using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::run_shell;
using flashsim::test::schema_violations;
using flashsim::test::TemporaryFolder;

nlohmann::json json_of(const std::string& arguments) {
  return nlohmann::json::parse(run_flashsim("softmax " + arguments + " --format json").out);
}

}  // namespace

TEST_CASE("the JSON of softmax follows its schema") {
  for (const char* arguments : {"", "--top-k 5", "--columns 1048576 --dtype fp64",
                                "--rows 1 --columns 1 --top-k 1", "--columns 1000000 --sram 2"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.softmax-1").empty());
  }
}

TEST_CASE("a softmax is repeated from its JSON, and options lie over it") {
  const TemporaryFolder folder;
  const std::string made = "softmax --rows 9 --columns 70 --top-k 4 --dtype bf16 --sram 100 --format json";
  REQUIRE(run_shell("flashsim " + made + " --out r.json", folder.path()).status == 0);
  const auto again = run_shell("flashsim softmax --input r.json --format json", folder.path());
  CHECK(again.out == read_whole(folder / "r.json"));
  const auto over = run_shell("flashsim softmax --input r.json --columns 80 --format json", folder.path());
  const auto json = nlohmann::json::parse(over.out);
  CHECK(json["input"]["columns"] == 80);
  CHECK(json["input"]["rows"] == 9);
}

TEST_CASE("every form has every way") {
  for (const char* format : {"table", "csv", "markdown"}) {
    INFO(format);
    const auto shown = run_flashsim(std::string("softmax --top-k 5 --format ") + format);
    CHECK(shown.status == 0);
    for (const char* way : {"naive", "safe", "online"}) CHECK(shown.out.find(way) != std::string::npos);
  }
  const std::string csv = run_flashsim("softmax --top-k 5 --format csv").out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 7);
}

TEST_CASE("what a softmax can't be is refused in one line") {
  CHECK(refusal("softmax --rows 0").starts_with("error: --rows "));
  CHECK(refusal("softmax --columns nan").starts_with("error: --columns "));
  CHECK(refusal("softmax --top-k -1").starts_with("error: --top-k "));
  CHECK(refusal("softmax --columns 4 --top-k 5") == "error: top-k is 5, and a row has 4 columns\n");
  CHECK(refusal("softmax --sram 1") == "error: 1 B of shared memory don't hold one fp16 element\n");
  CHECK(refusal("softmax --rows 1099511627776 --columns 1099511627776") ==
        "error: a count of softmax over 1099511627776 × 1099511627776 leaves 64 bits\n"
        "hint: make --rows or --columns smaller\n");
  CHECK(refusal("softmax --gpu a101").starts_with("error: "));
  CHECK(refusal("softmax --dtype fp17").starts_with("error: unknown type 'fp17'"));
  CHECK(refusal("softmax --seq 4").starts_with("error: unknown option '--seq'"));
  CHECK(run_flashsim("--seq 4 softmax").err == "error: softmax takes no --seq\n");
}
