// Runs: the same tensors whatever they come from, the same bits whatever the threads, counts that are those
// predicted, and faults told where they are.
#include "core/study/run.hpp"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/account/ledger.hpp"
#include "core/base/npy.hpp"
#include "core/study/run_inputs.hpp"
#include "tests/random_problem.hpp"
#include "tests/study/runs.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

bool near(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

using test::numbers_of;
using test::planned;
using test::ran;
using test::repeated;
using test::scenario_of;
using test::small_run;

template <class T>
RunInputs<T> inputs_of(const RunPlan& plan) {
  auto inputs = run_inputs<T>(plan, {});
  REQUIRE(test::message_of(inputs) == test::kNoError);
  return std::move(inputs).value();
}

const char* const kRandomScenario = R"({"schema": "flashsim.scenario/1",
  "problem": {"batch": 2, "heads": 4, "kv_heads": 2, "seq": 37, "kv_seq": 50, "head_dim": 6},
  "tensors": {"random": {"seed": 5, "magnitude": 3}}, "tiling": {"query_rows": 8, "key_rows": 16}})";

TEST_CASE("what a run draws are a scenario's random numbers, in order Q, K, V, dO") {
  RunRequest request = small_run();
  request.seed = 5;
  request.magnitude = 3;
  request.backward = true;
  request.compute = NumberType::fp64;
  const auto drawn = inputs_of<double>(planned(request));
  const Inputs<double> scenario = scenario_of(kRandomScenario).tensors();
  CHECK(drawn.qkv.q.data() == scenario.q.data());
  CHECK(drawn.qkv.k.data() == scenario.k.data());
  CHECK(drawn.qkv.v.data() == scenario.v.data());
  std::mt19937_64 generator(5);
  Tensor4<double> passed(1, 1, 1,
                         static_cast<std::int64_t>(scenario.q.data().size() + 2 * scenario.k.data().size()));
  draw(generator, 3, passed);
  Tensor4<double> d_o(2, 4, 37, 6);
  draw(generator, 3, d_o);
  CHECK(drawn.d_o.data() == d_o.data());
  request.compute = NumberType::fp32;
  const auto single = inputs_of<float>(planned(request));
  CHECK(single.qkv.q.data() == converted_tensor<float>(scenario.q).data());
  CHECK(single.d_o.data() == converted_tensor<float>(d_o).data());
}

TEST_CASE("a scenario, files and a seed with the same numbers give the same bits") {
  RunRequest drawn = small_run();
  drawn.seed = 5;
  drawn.magnitude = 3;
  drawn.backward = true;
  const auto expected = numbers_of(ran(drawn));

  RunRequest of_scenario{.scenario = scenario_of(kRandomScenario), .backward = true};
  CHECK(numbers_of(ran(of_scenario)) == expected);

  const test::TemporaryFolder folder;
  const auto inputs = inputs_of<float>(planned(drawn));
  for (const auto& [name, tensor] : {std::pair{"q.npy", &inputs.qkv.q},
                                     {"k.npy", &inputs.qkv.k},
                                     {"v.npy", &inputs.qkv.v},
                                     {"do.npy", &inputs.d_o}}) {
    REQUIRE(test::message_of(write_npy(folder / name, *tensor, 4)) == test::kNoError);
  }
  RunRequest of_files{.account = {.tiles = {8, 16}},
                      .q = folder / "q.npy",
                      .k = folder / "k.npy",
                      .v = folder / "v.npy",
                      .d_o = folder / "do.npy",
                      .backward = true};
  const RunReport report = ran(of_files);
  CHECK(numbers_of(report) == expected);
  CHECK(numbers_of(repeated(report)) == expected);
}

TEST_CASE("the number of threads changes neither a bit nor a count") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    RunRequest request = small_run(facts.algorithm);
    request.backward = facts.algorithm == Algorithm::flash2 || facts.algorithm == Algorithm::standard;
    request.threads = 1;
    const RunReport one = ran(request);
    for (const int threads : {2, 3, 8}) {
      CAPTURE(facts.name, threads);
      request.threads = threads;
      const RunReport many = ran(request);
      CHECK(numbers_of(many) == numbers_of(one));
      CHECK(discrepancies(*one.forward.counted, *many.forward.counted).empty());
      if (request.backward) CHECK(discrepancies(*one.backward->counted, *many.backward->counted).empty());
    }
  }
}

TEST_CASE("what a run counts is what the closed form predicts, for any shape, algorithm and threads") {
  test::RandomShapes shapes(11);
  for (int n = 0; n < 60; ++n) {
    test::Shape shape = shapes.next(24);
    if (shape.problem.storage == NumberType::fp8) shape.problem.storage = NumberType::bf16;
    const Problem& p = shape.problem;
    for (const AlgorithmFacts& facts : kAlgorithms) {
      CAPTURE(facts.name, text_of(shape), n);
      AccountRequest account = request_of(p);
      account.algorithm = facts.algorithm;
      account.tiles = {shape.tiling.query_rows, shape.tiling.key_rows};
      account.pattern = test::pattern_for(facts.algorithm);
      const RunReport report = ran({.account = account, .threads = 1 + n % 4});
      REQUIRE(report.discrepancies.empty());
      REQUIRE(report.forward.counted->hbm_total().total() > Bytes());
      REQUIRE(report.verdict == Verdict::right);
    }
  }
}

TEST_CASE("the backward pass is verified in every type, and counted as its walk counts alone") {
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::flash2}) {
    for (const NumberType type : {NumberType::fp16, NumberType::bf16, NumberType::fp32, NumberType::fp64}) {
      CAPTURE(name_of(type));
      RunRequest request = small_run(algorithm);
      request.backward = true;
      request.account.dtype = type;
      request.threads = 3;
      const RunReport report = ran(request);
      CHECK(report.verdict == Verdict::right);
      const RunPlan& plan = report.plan;
      Ledger ledger(plan.problem);
      walk_backward(algorithm, plan.problem, plan.tiling, ledger);
      const Count walks = walks_of(plan.problem, plan.method());
      Tally alone = ledger.times(walks);
      alone.steps = alone.steps * walks;
      alone.peak_allocated = Bytes();
      CHECK(discrepancies(alone, *report.backward->counted).empty());
      CHECK(report.backward_discrepancies.empty());
    }
  }
}

TEST_CASE("FLOPs are those of the visible pairs, and none of products that aren't made") {
  RunRequest request = small_run();
  request.backward = true;
  const RunReport report = ran(request);
  // Of 50 keys the first of 37 queries sees 14, the last all.
  std::int64_t pairs = 0;
  for (std::int64_t row = 0; row < 37; ++row) pairs += 8 * (14 + row);
  CHECK(report.forward.flops == Flops(4 * 6 * pairs));
  CHECK(report.backward->flops == Flops(10 * 6 * pairs));
  request.account.algorithm = Algorithm::standard;
  CHECK(ran(request).backward->flops == Flops(8 * 6 * pairs));
  const auto scores = find_scenario("break-it");
  REQUIRE(scores);
  CHECK(ran({.scenario = *scores}).forward.flops == Flops(2 * 8));
  CHECK(report.forward.seconds.value > 0);
  CHECK(near(report.forward.rate().value, static_cast<double>(4 * 6 * pairs) / report.forward.seconds.value));
}

TEST_CASE("what the JSON of a run asks for repeats it to the bit") {
  std::vector<RunRequest> requests(7, small_run());
  requests[0].account.dtype = NumberType::fp16;
  requests[0].backward = true;
  requests[1].scale = -0.25;
  requests[1].account.causal = false;
  requests[1].compute = NumberType::fp64;
  requests[2].no_rescale = true;
  requests[2].account.alignment = CausalAlignment::top_left;
  requests[3].fault = Fault::inverted_rescale;
  requests[3].seed = 77;
  requests[3].magnitude = 4;
  requests[4] = {.scenario = scenario_of(kRandomScenario), .magnitude = 2, .backward = true};
  requests[5] = {.account = {.tiles = {1, 2}},
                 .scenario = *find_scenario("break-it"),
                 .magnitude = 7,
                 .no_subtract_max = true};
  requests[6] = {.scenario = *find_scenario("three-token"), .seed = 9, .magnitude = 3, .backward = true};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    const RunReport report = ran(requests[i]);
    const RunReport again = repeated(report);
    CHECK(numbers_of(again) == numbers_of(report));
    CHECK(run_input_json(again.plan) == run_input_json(report.plan));
    CHECK(again.verdict == report.verdict);
  }
}

TEST_CASE("a run reports the row and the tile that first went wrong, and how many rows are wrong") {
  // Only row 2's maximum rises, in its second key tile; its first value that shows it is column 0.
  Scenario scenario = scenario_of(R"({"schema": "flashsim.scenario/1", "problem": {"causal": false},
    "tensors": {"scores": [[5, 5, 0, 0, 1, 1], [4, 4, 3, 3, 2, 2], [0, 0, 3, 3, 1, 1], [9, 9, 1, 1, 1, 1]],
                "v": [[1], [2], [3], [4], [5], [6]]},
    "tiling": {"query_rows": 2, "key_rows": 2}})");
  const RunReport right = ran({.scenario = scenario});
  CHECK(right.verdict == Verdict::right);
  CHECK_FALSE(right.first_fault);
  CHECK(right.why.empty());

  const RunReport broken = ran({.scenario = scenario, .no_rescale = true});
  CHECK(broken.verdict == Verdict::broken);
  CHECK(broken.verification.output.rows == 4);
  CHECK(broken.verification.wrong_rows() == 1);
  REQUIRE(broken.first_fault);
  CHECK(broken.first_fault->place == RowPlace{0, 0, 2});
  CHECK(broken.first_fault->query_tile == 1);
  CHECK(broken.first_fault->key_tile == 1);
  CHECK(broken.first_fault->column == 0);
  // l and o kept the reference 0 of the first tile: (1 + 2 + 3 + 4) / 4 instead of (1·e⁻³ + …).
  CHECK(near(broken.first_fault->got, 2.5));
  const double w = std::exp(-3);
  CHECK(near(broken.first_fault->expected, (3 * w + 7) / (2 * w + 2)));
  CHECK(broken.why == why_broken({.rescale = false}));
}

TEST_CASE("what is wrong in L alone counts as a wrong row") {
  // 300 equal weights add up to 256 in bf16, in l and in O alike.
  const RunReport report = ran(
      {.account =
           {.heads = 1, .seq = 1, .kv_seq = 300, .head_dim = 1, .dtype = NumberType::bf16, .tiles = {1, 300}},
       .magnitude = 0,
       .accumulate_in_storage = true});
  CHECK(report.verdict == Verdict::broken);
  CHECK(report.verification.output.agrees());
  CHECK(report.verification.wrong_rows() == 1);
  CHECK_FALSE(report.first_fault->column);
}

TEST_CASE("a switch that breaks nothing says what spared the result") {
  const auto why = [](RunRequest request) {
    const RunReport report = ran(request);
    CHECK(report.verdict == Verdict::right);
    return report.why;
  };
  const Scenario break_it = *find_scenario("break-it");
  CHECK(why({.account = {.tiles = {1, 8}}, .scenario = break_it, .no_rescale = true}) ==
        "one key tile holds all 8 keys, so there is no state to bring along");
  CHECK(why({.scenario = break_it, .no_subtract_max = true}) ==
        "scores of at most 3.00 are small enough for exp(s), which fp32 holds up to s = 88.7");
  CHECK(why({.compute = NumberType::fp64, .scenario = break_it, .no_subtract_max = true}) ==
        "scores of at most 3.00 are small enough for exp(s), which fp64 holds up to s = 709.8");
  CHECK(why({.scenario = break_it, .fault = Fault::finite_mask}) == "nothing is masked");
  CHECK(why({.scenario = *find_scenario("three-token"), .fault = Fault::finite_mask}) ==
        "no row's visible scores come near −10⁴");
  CHECK(why({.scenario = break_it, .fault = Fault::unmasked_padding}) ==
        "8 keys fill tiles of 2, so nothing is padded");
  CHECK(why({.scenario = *find_scenario("three-token"), .no_rescale = true}) ==
        "no row's maximum rose far enough from one key tile to the next to be told from rounding");
}

TEST_CASE(
    "results too near to nothing to tell are undecided, and overflowing storage is wrong and says why") {
  RunRequest undecided = small_run();
  undecided.scale = 1e30;
  CHECK(ran(undecided).verdict == Verdict::undecided);
  RunRequest overflowing = small_run(Algorithm::standard);
  overflowing.account.dtype = NumberType::fp16;
  overflowing.magnitude = 3000;
  const RunReport report = ran(overflowing);
  CHECK(report.verdict == Verdict::wrong);
  CHECK(report.why.starts_with("standard stores S in fp16, which scores of up to "));
}

TEST_CASE("a saved run reads back as it was, in the compute type") {
  const test::TemporaryFolder folder;
  for (const NumberType compute : {NumberType::fp32, NumberType::fp64}) {
    RunRequest request = small_run();
    request.backward = true;
    request.compute = compute;
    const RunReport report = ran(request);
    const std::string out = folder / name_of(compute);
    CHECK(test::message_of(check_save(report.plan, out)) == test::kNoError);
    const auto saved = save_run(report, out);
    REQUIRE(test::message_of(saved) == test::kNoError);
    CHECK(*saved == std::vector<std::string>{out + "/o.npy", out + "/lse.npy", out + "/dq.npy",
                                             out + "/dk.npy", out + "/dv.npy"});
    std::vector<double> numbers;
    for (const std::string& path : *saved) {
      const NpyRow row = path.ends_with("lse.npy") ? NpyRow::number : NpyRow::vector;
      const auto header = read_npy_header(path, row);
      REQUIRE(test::message_of(header) == test::kNoError);
      CHECK(header->type == compute);
      CHECK_FALSE(header->fortran_order);
      CHECK(header->shape.size() == (row == NpyRow::number ? 3 : 4));
      const auto tensor = read_npy<double>(path, row);
      REQUIRE(test::message_of(tensor) == test::kNoError);
      numbers.insert(numbers.end(), tensor->data().begin(), tensor->data().end());
    }
    CHECK(numbers == numbers_of(report));
  }
}

TEST_CASE("progress is told for each phase in turn, and never backwards within one") {
  RunRequest request = small_run();
  request.backward = true;
  request.threads = 4;
  std::vector<RunPhase> phases;
  double last = 0;
  const auto report = make_run(planned(request), [&](RunPhase phase, Flops, double done) {
    CHECK(done >= 0);
    CHECK(done <= 1);
    if (phases.empty() || phases.back() != phase) {
      phases.push_back(phase);
      last = 0;
    }
    last = done;
  });
  REQUIRE(report);
  CHECK(phases == std::vector{RunPhase::inputs, RunPhase::forward, RunPhase::backward, RunPhase::truth});
}

TEST_CASE("a tolerance is told with its steps, and ends with the tensors that it bounds") {
  RunRequest request = small_run();
  request.backward = true;
  const RunReport report = ran(request);
  const auto names = [](const Tolerance& tolerance) {
    std::vector<std::string> all;
    for (const NamedFormula& named : formulas_of(tolerance)) all.push_back(named.name);
    return all;
  };
  const auto forward = names(report.verification.tolerance);
  CHECK(std::vector<std::string>(forward.end() - 2, forward.end()) == std::vector<std::string>{"O", "L"});
  const auto backward = names(report.gradient_verification->tolerance);
  CHECK(std::vector<std::string>(backward.end() - 3, backward.end()) ==
        std::vector<std::string>{"dQ", "dK", "dV"});
}

}  // namespace
}  // namespace flashsim
