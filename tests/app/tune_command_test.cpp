// flashsim tune as a user meets it.
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
using nlohmann::json;

json tuned(const std::string& arguments) {
  return json::parse(run_flashsim("tune --format json " + arguments).out);
}

}  // namespace

TEST_CASE("a tuning's JSON follows its schema") {
  for (const char* arguments : {"", "--sram 192KiB --no-causal --dtype fp32", "--seq 1 --sram 1KiB --gpu t4",
                                "--seq 64 --kv-seq 2 --no-causal", "--head-dim 1 --multiple-of 64"}) {
    INFO(arguments);
    CHECK(schema_violations(tuned(arguments), "flashsim.tune-1").empty());
  }
  json wrong = tuned("");
  wrong["result"]["orders"][0]["best"]["fits"] = 1;
  CHECK_FALSE(schema_violations(wrong, "flashsim.tune-1").empty());
}

TEST_CASE("the best and the chosen tile move in an account what the tuning says") {
  for (const char* options : {"--sram 96KiB", "--sram 48KiB --no-causal --seq 1000 --dtype bf16"}) {
    const json report = tuned(options);
    REQUIRE(report["result"]["orders"].size() == 2);
    for (const json& order : report["result"]["orders"]) {
      const auto account = [&](const json& tile) {
        return json::parse(run_flashsim(std::string("--format json --algo ") +
                                        order["algorithm"].get<std::string>() + " " + options + " --tile-q " +
                                        tile["tile_q"].dump() + " --tile-k " + tile["tile_k"].dump())
                               .out)["result"]["hbm"]["total_bytes"];
      };
      CHECK(account(order["best"]) == order["best"]["hbm_total_bytes"]);
      CHECK(account(order["chosen"]) == order["chosen"]["hbm_total_bytes"]);
    }
  }
}

TEST_CASE("CSV holds the whole front") {
  const std::string csv = run_flashsim("tune --format csv").out;
  std::size_t lines = 0;
  for (auto at = csv.find(",front,"); at != std::string::npos; at = csv.find(",front,", at + 1)) ++lines;
  const json orders = tuned("")["result"]["orders"];
  CHECK(lines == orders[0]["front"].size() + orders[1]["front"].size());
}

TEST_CASE("a tuning's JSON repeats it, and options lie over it") {
  const TemporaryFolder folder;
  REQUIRE(run_shell("flashsim tune --seq 500 --sram 64KiB --multiple-of 8 --format json --out t.json",
                    folder.path())
              .status == 0);
  CHECK(run_shell("flashsim tune --input t.json --format json", folder.path()).out ==
        read_whole(folder / "t.json"));
  CHECK(run_shell("flashsim tune --input t.json --sram 32KiB --format csv", folder.path()).out ==
        run_flashsim("tune --seq 500 --sram 32KiB --multiple-of 8 --format csv").out);
}

TEST_CASE("the plot draws every line of the report's curve") {
  const TemporaryFolder folder;
  const auto ran = run_shell("flashsim tune --format json --plot t.svg --plot t.vl.json", folder.path());
  REQUIRE(ran.status == 0);
  const json curve = json::parse(ran.out)["result"]["curve"];
  const json plot = json::parse(read_whole(folder / "t.vl.json"));
  CHECK(plot["encoding"]["color"]["scale"]["domain"] ==
        json({"flash1, best tile", "flash2, best tile", "standard", "compulsory", "lower bound (order)"}));
  CHECK(plot["data"]["values"].size() == 5 * curve.size());
  for (std::size_t i = 0; i < curve.size(); ++i) {
    CHECK(plot["data"]["values"][i]["hbm_total_bytes"] == curve[i]["flash1_hbm_total_bytes"]);
  }
  CHECK(read_whole(folder / "t.svg").find("lower bound (order)") != std::string::npos);
}

TEST_CASE("what can't be tuned is refused in one clear line") {
  CHECK(refusal("tune --sram 100") ==
        "error: no tiles fit: one row each of Q, K and V needs 768 B of shared memory, and the SRAM is 100 "
        "B\n");
  CHECK(refusal("tune --sram 4KiB") ==
        "error: no tile of multiples of 16 fits 4096 B: 16×16 needs 12288 B\nhint: --multiple-of 4\n");
  CHECK(refusal("tune --seq 1099511627776").starts_with("error: a count of standard leaves 64 bits"));
  CHECK(refusal("tune --multiple-of 1 --sram 1MiB") ==
        "error: more than 250 000 tiles of multiples of 1 fit 1048576 B\nhint: --multiple-of 4\n");
  CHECK(refusal("tune --multiple-of 0") ==
        "error: --multiple-of must be a whole number from 1 to 1099511627776, not '0'\n");
  CHECK(refusal("tune --algo flash2").starts_with("error: unknown option '--algo'\n"));
  CHECK(refusal("--tile-q 64 tune") == "error: tune takes no --tile-q\n");
  CHECK(
      refusal("tune --plot t.png").starts_with("error: --plot must end in .svg or .vl.json, not 't.png'\n"));
  CHECK(refusal("tune --causal --no-causal") == "error: give --causal or --no-causal, not both\n");
}
