// The check is checked backward too: an error planted in a closed form or in a walk is reported.
#include <functional>
#include <string>
#include <vector>

#include "core/account/check.hpp"
#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/methods.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::methods_of;

/// Ragged both ways, with masked, whole and empty tile pairs, in two groups of heads.
constexpr Problem kProblem{.batch = 2, .heads = 4, .kv_heads = 2, .seq = 8, .kv_seq = 5, .head_dim = 3};
constexpr Tiling kTiles{3, 2};
constexpr unsigned kEveryPass = 15;

bool in(const std::string& figure, const std::vector<Discrepancy>& found) {
  for (const Discrepancy& d : found) {
    if (d.figure == figure) return true;
  }
  return false;
}

/// Hands on a walk in which step number `at` is done `times` times.
class ChangedStep : public Listener {
 public:
  ChangedStep(Listener& next, std::size_t at, int times) : next_(next), at_(at), times_(times) {}
  void step(const Step& step) override {
    const int times = seen_++ == at_ ? times_ : 1;
    for (int n = 0; n < times; ++n) next_.step(step);
  }
  void kernel(std::string_view name, std::int64_t blocks) override { next_.kernel(name, blocks); }
  void allocate(Operand operand, Bytes size) override { next_.allocate(operand, size); }
  void release(Operand operand, Bytes size) override { next_.release(operand, size); }

 private:
  Listener& next_;
  std::size_t at_;
  int times_;
  std::size_t seen_ = 0;
};

TEST_CASE(
    "a step that a backward walk leaves out or does twice is reported, where it moves or works there too") {
  for (const Method& method : methods_of(Pass::backward, kTiles, kEveryPass)) {
    const Tally predicted = predict(kProblem, method).tally;
    FollowedWalk whole;
    walk(kProblem, method, whole);
    for (std::size_t at = 0; at < whole.steps().size(); ++at) {
      const Step& step = whole.steps()[at];
      for (const int times : {0, 2}) {
        Ledger ledger(kProblem);
        ChangedStep changed(ledger, at, times);
        walk(kProblem, method, changed);
        const auto found = discrepancies(predicted, ledger.times(walks_of(kProblem, method)));
        CAPTURE(test::text_of(method), at, times, whole.lines()[at]);
        REQUIRE(in("steps", found));
        const std::string operand(name_of(step.operand));
        const std::string sram = "sram." + std::string(name_of(step.operation));
        switch (step.operation) {
          case Operation::load: REQUIRE(in("sm." + operand + ".read_bytes", found)); break;
          case Operation::store: REQUIRE(in("hbm." + operand + ".write_bytes", found)); break;
          case Operation::initialise: REQUIRE(in("hbm." + operand + " initial.write_bytes", found)); break;
          case Operation::reset:
          case Operation::discard: REQUIRE(found.size() == 1); break;
          default: REQUIRE(in(sram + ".read_bytes", found) == !step.idle);
        }
      }
    }
  }
}

TEST_CASE("memory that a backward walk forgets to give back is reported") {
  struct Keeps : Listener {
    explicit Keeps(Listener& listener) : next(listener) {}
    void step(const Step& step) override { next.step(step); }
    void kernel(std::string_view name, std::int64_t blocks) override { next.kernel(name, blocks); }
    void allocate(Operand operand, Bytes size) override { next.allocate(operand, size); }
    Listener& next;
  };
  const Method eager{.algorithm = Algorithm::eager, .tiling = kTiles, .pass = Pass::backward};
  Ledger ledger(kProblem);
  Keeps keeps(ledger);
  walk(kProblem, eager, keeps);
  const auto found = discrepancies(predict(kProblem, eager).tally, ledger.times(walks_of(kProblem, eager)));
  REQUIRE(found.size() == 1);
  CHECK(found.front().figure == "peak_allocated_bytes");
}

TEST_CASE("one byte, FLOP or step too many in a backward closed form is reported") {
  const std::vector<std::function<void(Tally&)>> errors{
      [](Tally& t) { t.hbm_of(Operand::dQ).written += Bytes(1); },
      [](Tally& t) { t.hbm_of(Operand::dO).read += Bytes(1); },
      [](Tally& t) { t.sm_of(Operand::V).read += Bytes(1); },
      [](Tally& t) { t.sram_of(Operation::score_gradient).read += Bytes(1); },
      [](Tally& t) { t.work.products += Flops(1); },
      [](Tally& t) { t.work.softmax += Flops(1); },
      [](Tally& t) { t.work.exponentials += 1; },
      [](Tally& t) { t.peak_allocated += Bytes(1); },
      [](Tally& t) { t.kernels.back().blocks += 1; },
      [](Tally& t) { t.kernels.pop_back(); },
      [](Tally& t) { t.steps += 1; }};
  for (const Method& method : methods_of(Pass::backward, kTiles, kEveryPass)) {
    Ledger ledger(kProblem);
    walk(kProblem, method, ledger);
    const Tally predicted = predict(kProblem, method).tally;
    CHECK(discrepancies(predicted, ledger.times(walks_of(kProblem, method))).empty());
    for (const auto& error : errors) {
      Tally wrong = predicted;
      error(wrong);
      CHECK_FALSE(discrepancies(wrong, ledger.times(walks_of(kProblem, method))).empty());
    }
  }
}

}  // namespace
}  // namespace flashsim
