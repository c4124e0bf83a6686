// The algorithms without an online softmax, in what only they have.
#include "core/attention/executor.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::drawn_inputs;
using test::Given;
using test::kInfinity;
using test::RandomNumbers;
using test::Way;

Given drawn(RandomNumbers& random, std::int64_t seq, std::int64_t kv_seq, bool causal) {
  const Problem problem{
      .batch = 1, .heads = 2, .kv_heads = 1, .seq = seq, .kv_seq = kv_seq, .head_dim = 5, .causal = causal};
  return {problem, drawn_inputs(problem, random, 2)};
}

TEST_CASE("S that is stored in the compute type changes no bit of three passes") {
  RandomNumbers random(31);
  for (const bool causal : {false, true}) {
    const Given given = drawn(random, 37, 50, causal);
    for (const Tiling tiling : {Tiling{1, 1}, Tiling{8, 7}, Tiling{64, 64}}) {
      INFO(tiling_text(tiling));
      CHECK(test::same_bits(test::attend_in<float>({Algorithm::three_pass, tiling}, given),
                            test::attend_in<float>({Algorithm::three_pass_stored, tiling}, given)));
    }
  }
}

template <class T>
void check_chunks(const Given& given, Tiling chunks) {
  const Way way{Algorithm::memory_efficient, chunks};
  INFO(test::text_of(way) << " of " << shape_text(given.problem));
  const test::Misses misses = test::misses_of<T>(way, given);
  CHECK(misses.output <= 1);
  CHECK(misses.lse <= 1);
}

TEST_CASE("chunks of several tiles, whole and ragged, give the truth") {
  RandomNumbers random(32);
  for (const bool causal : {false, true}) {
    for (const auto& [seq, kv_seq] : {std::pair{300, 300}, {140, 385}, {260, 129}}) {
      const Given given = drawn(random, seq, kv_seq, causal);
      for (const Tiling chunks : {Tiling{200, 150}, Tiling{128, 256}, Tiling{1024, 4096}, Tiling{129, 1}}) {
        check_chunks<float>(given, chunks);
        check_chunks<double>(given, chunks);
      }
    }
  }
}

TEST_CASE("a row may see nothing of a chunk, and NaN behind the mask in a later chunk never shows") {
  Given given = test::given_products({1, 1, 1}, {0, 0, test::kNaN}, {5, 7, kInfinity});
  given.problem.causal = true;
  given.problem.seq = 2;
  given.problem.alignment = CausalAlignment::top_left;
  given.inputs.q = test::matrix(2, 1, {1, 1});
  for (const Tiling chunks : {Tiling{1, 1}, Tiling{2, 1}, Tiling{2, 2}, Tiling{2, 3}}) {
    const Way way{Algorithm::memory_efficient, chunks};
    INFO(test::text_of(way));
    CHECK(test::unlike(test::attend_in<double>(way, given), {5, 6}, {0, std::log(2.0)}) == "");
    CHECK(test::unlike(test::attend_in<float>(way, given), {5, 6}, {0, std::log(2.0)}) == "");
  }
}

/// What lies on the chip when `operation` was done last.
class Watcher : public StepObserver {
 public:
  Watcher(Operation operation, ChipValue value) : operation_(operation), value_(value) {}
  void begin_head(std::int64_t, std::int64_t) override {}
  void executed(const Step& step, const ChipValues& chip) override {
    if (step.operation == operation_) seen.push_back(chip.read(value_).numbers);
  }
  std::vector<std::vector<double>> seen;

 private:
  Operation operation_;
  ChipValue value_;
};

TEST_CASE("the passes of one row leave what they are for") {
  const double ln2 = std::log(2.0);
  const Given given = test::given_scores(1, {0, ln2, 0, 2 * ln2}, {1, 2, 4, 8});
  const auto watched = [&](Algorithm algorithm, Operation operation, ChipValue value) {
    Watcher watcher(operation, value);
    attend<double>(algorithm, given.problem, {1, 2}, {}, given.inputs, {.observer = &watcher});
    return watcher.seen;
  };
  using Seen = std::vector<std::vector<double>>;
  for (const Algorithm algorithm : {Algorithm::three_pass, Algorithm::three_pass_stored}) {
    CHECK(watched(algorithm, Operation::row_maximum, ChipValue::m) == Seen{{ln2}, {2 * ln2}});
    const Seen sums = watched(algorithm, Operation::denominator, ChipValue::l);
    REQUIRE(sums.size() == 2);
    CHECK(test::is_near<double>(sums[0][0], 0.75));
    CHECK(test::is_near<double>(sums[1][0], 2));
    const Seen weights = watched(algorithm, Operation::probabilities, ChipValue::P);
    REQUIRE(weights.size() == 2);
    CHECK(test::is_near<double>(weights[0][0], 0.125));
    CHECK(test::is_near<double>(weights[1][1], 0.5));
  }
  // Chunks by their own maximum: ln 2 with l = 3/2, then ln 4 with l = 5/4; together 3/4 + 5/4.
  CHECK(watched(Algorithm::memory_efficient, Operation::row_maximum, ChipValue::m) == Seen{{ln2}, {2 * ln2}});
  const Seen parts = watched(Algorithm::memory_efficient, Operation::denominator, ChipValue::l);
  REQUIRE(parts.size() == 2);
  CHECK(test::is_near<double>(parts[0][0], 1.5));
  CHECK(test::is_near<double>(parts[1][0], 1.25));
  const Seen combined = watched(Algorithm::memory_efficient, Operation::combine, ChipValue::l);
  REQUIRE(combined.size() == 2);
  CHECK(test::is_near<double>(combined[0][0], 0.75));
  CHECK(test::is_near<double>(combined[1][0], 2));
}

}  // namespace
}  // namespace flashsim
