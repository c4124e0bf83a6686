// --pass, --passes and --deterministic on the command line.
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

json json_of(const std::string& arguments) {
  return json::parse(run_flashsim(arguments + " --format json").out);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the JSON of every pass follows its schema") {
  for (const char* arguments :
       {"--pass backward", "--pass both --algo standard --explain", "--pass both --algo flash1 --seq 100",
        "--pass both --algo eager --no-causal --passes mask,dropout",
        "--pass backward --deterministic --seq 9"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.account-1").empty());
  }
  for (const char* arguments :
       {"compare --pass both --seq 512",
        "compare --pass backward --deterministic --passes softmax,dropout --seq 512"}) {
    INFO(arguments);
    CHECK(schema_violations(json_of(arguments), "flashsim.compare-1").empty());
  }
  CHECK(schema_violations(json_of("run --algo eager --passes softmax --seq 20 --heads 1"), "flashsim.run-1")
            .empty());
}

TEST_CASE("the title names the pass, and what isn't as usual") {
  CHECK(run_flashsim("--pass backward").out.starts_with("FlashAttention-2 backward   B 1 "));
  const std::string both = run_flashsim("--pass both --algo eager --passes dropout").out;
  CHECK(both.starts_with("Eager attention forward and backward   B 1 "));
  CHECK(has(both, " · causal · passes softmax, dropout · tiles "));
  CHECK(has(run_flashsim("--pass backward --deterministic").out, " · causal · deterministic · tiles "));
  CHECK(run_flashsim("compare --pass both --seq 512").out.starts_with("Attention forward and backward   "));
}

TEST_CASE("an account with gradients says what is kept for them, and what keeping less costs") {
  const std::string text = run_flashsim("--pass both").out;
  CHECK(has(text, "\nKept for backward\n"));
  CHECK(has(text, "  FlashAttention-2     65.0 MiB"));
  CHECK(has(text, "  Standard attention   4.00 GiB"));
  CHECK_FALSE(has(run_flashsim("").out, "Kept for backward"));
  const json saved = json_of("--pass both")["result"]["saved_for_backward"];
  CHECK(saved["bytes"] == 65 << 20);
  CHECK(saved["standard_bytes"] == std::int64_t{1} << 32);
  CHECK(saved["tensors"].size() == 2);
  CHECK(saved["recomputed_flops"].get<std::int64_t>() * 7 ==
        json_of("--pass both")["result"]["flops"]["executed"].get<std::int64_t>());
  CHECK(json_of("")["result"]["saved_for_backward"].is_null());
}

TEST_CASE("a JSON result of both passes repeats its run") {
  const TemporaryFolder folder;
  for (const char* shape :
       {"--algo eager --pass both --no-causal --passes mask,softmax --seq 300",
        "--pass backward --deterministic --seq 300", "compare --pass both --seq 300 --passes scale"}) {
    INFO(shape);
    const std::string command = std::string(shape).starts_with("compare") ? "compare " : "";
    REQUIRE(
        run_shell(std::string("flashsim ") + shape + " --format json --out a.json", folder.path()).status ==
        0);
    CHECK(run_shell("flashsim " + command + "--input a.json --format json", folder.path()).out ==
          read_whole(folder / "a.json"));
  }
  REQUIRE(
      run_shell("flashsim compare --pass both --seq 300 --format json --out b.json", folder.path()).status ==
      0);
  CHECK(run_shell("flashsim --input b.json", folder.path()).out == run_flashsim("--pass both --seq 300").out);
}

TEST_CASE("passes that mean nothing are refused") {
  CHECK(refusal("--pass backwards") ==
        "error: unknown pass 'backwards'\nhint: did you mean 'backward'? known: forward, backward, both\n");
  CHECK(refusal("--algo eager --passes scale,msk").starts_with("error: unknown pass of eager 'msk'\nhint: "));
  CHECK(refusal("--passes scale") ==
        "error: --passes names passes of eager, and the algorithm is flash2\nhint: --algo eager\n");
  CHECK(refusal("--deterministic") ==
        "error: --deterministic says how gradients are made, and --pass is forward\n"
        "hint: --pass backward or --pass both\n");
  CHECK(refusal("--algo standard --pass both --deterministic") ==
        "error: --deterministic is a choice of flash2, and the algorithm is standard\n");
  CHECK(refusal("run --algo eager --passes dropout --seq 8") ==
        "error: --passes names dropout, and a run has no random mask to drop by\nhint: leave dropout out\n");
  CHECK(refusal("run --algo eager --passes mask --no-causal --seq 8") ==
        "error: --passes names mask, and the problem isn't causal: a run has no mask of padded keys\n"
        "hint: leave mask out, or --causal\n");
}

TEST_CASE("a run follows eager's passes, and counts what it predicts") {
  for (const char* passes : {"softmax", "scale", "mask", "scale,mask"}) {
    INFO(passes);
    const auto ran =
        run_flashsim(std::string("run --algo eager --seq 40 --heads 2 --head-dim 8 --passes ") + passes);
    CHECK(ran.status == 0);
    CHECK(has(ran.out, "predicted = counted"));
  }
}
