#include "core/account/ledger.hpp"

#include <vector>

#include "core/account/check.hpp"
#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

const Problem kProblem{
    .batch = 2, .heads = 3, .kv_heads = 3, .seq = 4, .kv_seq = 4, .head_dim = 5, .storage = NumberType::fp16};

TEST_CASE("a load is read from HBM and written on the chip, a store the other way round") {
  Ledger ledger(kProblem);
  ledger.step({.operation = Operation::load, .operand = Operand::K, .keys = {0, 3}});
  ledger.step({.operation = Operation::store, .operand = Operand::O, .rows = {0, 2}});
  const Tally& tally = ledger.walked();
  CHECK(tally.hbm_of(Operand::K).read == Bytes(3 * 5 * 2));
  CHECK(tally.sm_of(Operand::K).read == Bytes(3 * 5 * 2));
  CHECK(tally.sram_of(Operation::load).written == Bytes(3 * 5 * 2));
  CHECK(tally.hbm_of(Operand::O).written == Bytes(2 * 5 * 2));
  CHECK(tally.sm_of(Operand::O).written == Bytes(2 * 5 * 2));
  CHECK(tally.sram_of(Operation::store).read == Bytes(2 * 5 * 2));
  CHECK(tally.hbm_total().total() == Bytes(50));
  CHECK(tally.steps == Count(2));
}

TEST_CASE("a repeated load crosses into the SMs again and reads no HBM") {
  Ledger ledger(kProblem);
  ledger.step({.operation = Operation::load, .operand = Operand::K, .keys = {0, 3}, .again = true});
  CHECK(ledger.walked().hbm_of(Operand::K).read == Bytes(0));
  CHECK(ledger.walked().sm_of(Operand::K).read == Bytes(3 * 5 * 2));
  CHECK(ledger.walked().sram_of(Operation::load).written == Bytes(3 * 5 * 2));
}

TEST_CASE("a starting value is a write with a line of its own") {
  Ledger ledger(kProblem);
  ledger.step({.operation = Operation::initialise, .operand = Operand::m, .rows = {0, 4}});
  CHECK(ledger.walked().initial_of(Operand::m).written == Bytes(16));
  CHECK(ledger.walked().hbm_of(Operand::m).written == Bytes(0));
  CHECK(ledger.walked().sm_of(Operand::m).written == Bytes(16));
  CHECK(ledger.walked().hbm_total().written == Bytes(16));
}

TEST_CASE("an idle mask is a step that costs nothing") {
  Ledger ledger(kProblem);
  Step step{.operation = Operation::mask, .rows = {0, 4}, .keys = {0, 4}, .idle = true};
  ledger.step(step);
  CHECK(ledger.walked().work.mask == Flops(0));
  CHECK(ledger.walked().sram_total().total() == Bytes(0));
  step.idle = false;
  ledger.step(step);
  CHECK(ledger.walked().work.mask == Flops(16));
  CHECK(ledger.walked().sram_of(Operation::mask).read == Bytes(32));
  CHECK(ledger.walked().sram_of(Operation::mask).written == Bytes(32));
  CHECK(ledger.walked().steps == Count(2));
}

TEST_CASE("the peak is the most that was alive at once, not all that ever was") {
  Ledger ledger(kProblem);
  const Bytes matrix(2 * 3 * 4 * 4 * 2);
  ledger.allocate(Operand::S, whole_size(Operand::S, kProblem));
  ledger.allocate(Operand::P, whole_size(Operand::P, kProblem));
  ledger.release(Operand::S, whole_size(Operand::S, kProblem));
  ledger.allocate(Operand::L, whole_size(Operand::L, kProblem));
  CHECK(ledger.walked().peak_allocated == matrix + matrix);
  ledger.allocate(Operand::S, whole_size(Operand::S, kProblem));
  CHECK(ledger.walked().peak_allocated == matrix + matrix + Bytes(2 * 3 * 4 * 4));
}

TEST_CASE(
    "all heads move, work and launch so many times what a walk does as there are walks; steps and peak are "
    "told once") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    Ledger ledger(kProblem);
    walk(facts.algorithm, kProblem, {3, 3}, ledger);
    const auto one = figures_of(ledger.walked());
    const Count walks = walks_of(kProblem, {.algorithm = facts.algorithm});
    const auto all = figures_of(ledger.times(walks));
    REQUIRE(one.size() == all.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      const bool once = one[i].name == "steps" || one[i].name == "peak_allocated_bytes" ||
                        one[i].name.ends_with(".launches");
      CAPTURE(facts.name, one[i].name);
      CHECK(all[i].name == one[i].name);
      CHECK(all[i].value == one[i].value * (once ? Count(1) : walks));
    }
  }
}

TEST_CASE("ledgers that follow the parts of every head add up to the walk of all heads") {
  const Tiling tiling{2, 2};
  for (const AlgorithmFacts& facts : kAlgorithms) {
    CAPTURE(facts.name);
    Ledger whole(kProblem);
    walk(facts.algorithm, kProblem, tiling, whole);
    const Method method{.algorithm = facts.algorithm, .tiling = tiling};
    const Count walks = walks_of(kProblem, method);
    Tally expected = whole.times(walks);
    expected.steps = expected.steps * walks;
    expected.peak_allocated = Bytes();

    std::vector<Ledger> ledgers(3, Ledger(kProblem));
    std::size_t turn = 0;
    const std::int64_t tiles = query_tiles_of(kProblem, method).end;
    for (std::int64_t head = 0; head < walks.value(); ++head) {
      for (const Range part : {Range{1, tiles}, Range{0, 1}}) {
        walk_part(facts.algorithm, kProblem, tiling, part, ledgers[turn++ % ledgers.size()]);
      }
    }
    CHECK(discrepancies(expected, added_up(ledgers)).empty());
  }
  CHECK(added_up({}).steps == Count(0));
}

}  // namespace
}  // namespace flashsim
