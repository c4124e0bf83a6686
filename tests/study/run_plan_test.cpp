// What a run's options come to: types, tiles, tensors, memory, and one request laid over another.
#include "core/study/run_plan.hpp"

#include <string>

#include "core/base/parse.hpp"
#include "core/study/account.hpp"
#include "core/study/run_memory.hpp"
#include "tests/pattern_for.hpp"
#include "tests/study/runs.hpp"

namespace flashsim {
namespace {

using test::message_of;
using test::planned;
using test::scenario_of;
using test::small_run;

TEST_CASE("the bare run is the worked example in float32, drawn from seed 0 with magnitude 1") {
  const RunPlan plan = planned({});
  CHECK(plan.algorithm == Algorithm::flash2);
  CHECK(shape_text(plan.problem) == "B 1 · H 32 · N 8192 · d 128");
  CHECK(plan.problem.causal);
  CHECK(plan.compute == NumberType::fp32);
  CHECK(plan.problem.storage == NumberType::fp32);
  CHECK(plan.tensors.qkv_drawn());
  CHECK(plan.tensors.random.seed == 0);
  CHECK(plan.tensors.random.magnitude == 1);
  CHECK(plan.gpu == "a100");
  CHECK_FALSE(plan.shared_memory);
  CHECK_FALSE(plan.backward);
  CHECK_FALSE(plan.switches.broken());
  CHECK(plan.threads >= 1);
}

TEST_CASE("the storage type follows the compute type, and the compute type float64 where that is asked for") {
  const auto types = [](RunRequest request) {
    const RunPlan plan = planned(request);
    return std::string(name_of(plan.problem.storage)) + "/" + std::string(name_of(plan.compute));
  };
  RunRequest request = small_run();
  CHECK(types(request) == "fp32/fp32");
  request.account.dtype = NumberType::fp64;
  CHECK(types(request) == "fp64/fp64");
  request.account.dtype = NumberType::bf16;
  CHECK(types(request) == "bf16/fp32");
  request.compute = NumberType::fp64;
  CHECK(types(request) == "bf16/fp64");
  request.account.dtype.reset();
  CHECK(types(request) == "fp64/fp64");
  const Scenario wide = scenario_of(R"({"schema": "flashsim.scenario/1", "problem": {"dtype": "fp64"},
    "tensors": {"scores": [[1]], "v": [[1]]}})");
  CHECK(types({.scenario = wide}) == "fp64/fp64");
  CHECK(types({.account = {.dtype = NumberType::fp16}, .scenario = wide}) == "fp16/fp64");
  CHECK(types({.compute = NumberType::fp32, .scenario = wide}) == "fp32/fp32");
}

TEST_CASE("tiles are those that the account chooses for the same options") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    for (const char* gpu : {"a100", "rtx-4090", "t4"}) {
      for (const std::int64_t depth : {64, 256}) {
        const AccountRequest account{.algorithm = facts.algorithm,
                                     .seq = 300,
                                     .head_dim = depth,
                                     .dtype = NumberType::fp32,
                                     .gpu = gpu,
                                     .pattern = test::pattern_for(facts.algorithm)};
        const auto report = make_account(account);
        REQUIRE(report);
        CAPTURE(facts.name, gpu, depth);
        CHECK(tiling_text(planned({.account = account}).tiling) == tiling_text(report->method.tiling));
      }
    }
  }
}

TEST_CASE("explicit tiles needn't fit the GPU, only an explicit --sram") {
  RunRequest request = small_run();
  request.account.tiles = {4096, 4096};
  request.account.head_dim = 1024;
  CHECK(tiling_text(planned(request).tiling) == "4096×4096");
  request.account.tiles.key_rows.reset();
  CHECK(tiling_text(planned(request).tiling) == "4096×128");
  request.account.shared_memory = Bytes(65536);
  CHECK(message_of(plan_run(request)) ==
        "tiles 4096×1 need 16785408 B of shared memory for Q, K and V, and the limit given by --sram is "
        "65536 B");
}

TEST_CASE("a head too deep for a GPU's shared memory runs on the CPU all the same") {
  RunRequest request = small_run();
  request.account.tiles = {};
  request.account.head_dim = 100000;
  CHECK(tiling_text(planned(request).tiling) == "128×128");
}

TEST_CASE("memory is told before it is taken, and more than there is is refused") {
  RunPlan plan = planned(small_run());
  plan.threads = 1;
  // Q and O, K and V, L; tiles of S and P, of Q and O, of K and V.
  const std::int64_t tensors = 2 * (2 * 4 * 37 * 6) + 2 * (2 * 2 * 50 * 6) + 2 * 4 * 37;
  const std::int64_t tiles = 2 * (8 * 16) + 2 * (8 * 6) + 2 * (16 * 6);
  CHECK(memory_of(plan) == Bytes(4 * (tensors + tiles)));
  CHECK(message_of(check_memory(plan, memory_of(plan))) == test::kNoError);
  plan.algorithm = Algorithm::three_pass_stored;  // S of a query tile besides
  CHECK(memory_of(plan) == Bytes(4 * (tensors + tiles + 8 * 50)));
  // A chunk of S; O, m and l of each of the four key chunks; S for a row of tiles, Q and two of O, K and V.
  plan.algorithm = Algorithm::memory_efficient;
  CHECK(memory_of(plan) ==
        Bytes(4 * (tensors + 8 * 16 + 4 * 8 * (6 + 2) + 8 * 16 + 3 * (8 * 6) + 2 * (16 * 6))));
  plan.algorithm = Algorithm::flash2;
  CHECK(message_of(check_memory(plan, Bytes(20000))) ==
        "this run needs 26.5 KiB of memory (B 2 · H 4 · Hkv 2 · N 37 · Nkv 50 · d 6), and this machine has "
        "19.5 KiB");
  plan.problem.seq = plan.problem.heads = kLargestDimension;
  CHECK(memory_of(plan).overflowed());
  CHECK(message_of(check_memory(plan, Bytes(20000)))
            .starts_with("this run needs more memory than 64 bits can count "));
  CHECK(physical_memory() > Bytes(1 << 26));
}

TEST_CASE("a request laid over another keeps what it says, and the rest follows") {
  const auto under = [](RunRequest request) {
    const auto read = read_run_request(run_input_json(planned(request)).dump(), "r.json");
    REQUIRE(message_of(read) == test::kNoError);
    return *read;
  };
  const auto over = [](RunRequest request, const RunRequest& below) {
    return planned(laid_over(request, below));
  };

  // The scale 1/√d, key/value heads and lengths, tiles and the storage type follow.
  RunPlan plan = over({.account = {.head_dim = 64}}, under(small_run()));
  CHECK(plan.problem.score_scale() == 0.125);
  CHECK(tiling_text(plan.tiling) == "128×128");
  plan = over({.compute = NumberType::fp64}, under(small_run()));
  CHECK(plan.problem.storage == NumberType::fp64);
  plan = over({.account = {.dtype = NumberType::fp64}}, under(small_run()));
  CHECK(plan.compute == NumberType::fp64);
  plan = over({.account = {.seq = 5}}, under(small_run()));
  CHECK(plan.problem.kv_seq == 50);
  CHECK(tiling_text(plan.tiling) == "8×16");

  // An explicit scale stays.
  RunRequest scaled = small_run();
  scaled.scale = 2;
  CHECK(over({.account = {.head_dim = 64}}, under(scaled)).problem.score_scale() == 2);

  // Other tensors bring their own sizes.
  const RunPlan token = over({.scenario = *find_scenario("three-token")}, under(small_run()));
  CHECK(shape_text(token.problem) == "B 1 · H 1 · N 3 · d 2");
  CHECK(tiling_text(token.tiling) == "1×2");

  // Switches add up, and a fault replaces another.
  RunRequest broken = small_run();
  broken.no_rescale = true;
  broken.fault = Fault::finite_mask;
  const RunPlan more = over({.no_subtract_max = true, .fault = Fault::reset_per_tile}, under(broken));
  CHECK_FALSE(more.switches.rescale);
  CHECK_FALSE(more.switches.subtract_max);
  CHECK(more.switches.fault == Fault::reset_per_tile);

  // A drawn run under a seed; a scenario's own seed may be replaced.
  CHECK(over({.seed = 8}, under(small_run())).tensors.random.seed == 8);
}

TEST_CASE("the input of a run is read strictly") {
  const auto message = [](const std::string& text) { return message_of(read_run_request(text, "r.json")); };
  CHECK(message(R"({"input": {"seed": -1}})") == "r.json: input.seed must be at least 0, not -1");
  CHECK(message(R"({"input": {"threads": 0}})") ==
        "r.json: input.threads must be a whole number from 1 to 1024, not 0");
  CHECK(message(R"({"input": {"compute": "fp16"}})") == "r.json: input.compute: unknown compute type 'fp16'");
  CHECK(message(R"({"input": {"fault": "fp16"}})") == "r.json: input.fault: unknown fault 'fp16'");
  CHECK(message(R"({"input": {"accumulate": "x"}})") == "r.json: input.accumulate: unknown accumulation 'x'");
  CHECK(message(R"({"input": {"magnitude": "Infinity"}})") ==
        "r.json: input.magnitude must be a finite number, not \"Infinity\"");
  CHECK(message(R"({"input": {"scale": null, "scenario": 1}})") ==
        "r.json: input.scenario must be an object, not 1");
  CHECK(message(R"({"input": {"scenario": {"schema": "x"}}})") ==
        "r.json: input.scenario: schema must be \"flashsim.scenario/1\", not \"x\"");
  CHECK(message(R"({"input": {"sequence": 1}})") == "r.json: unknown key input.sequence");
  CHECK(message(R"({"schema": "flashsim.account/1", "input": {}})").find("flashsim.run/1") !=
        std::string::npos);
  CHECK(message("{}") == test::kNoError);
}

}  // namespace
}  // namespace flashsim
