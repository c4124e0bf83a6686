#include "core/account/check.hpp"

#include <set>
#include <string>
#include <vector>

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

const Problem kProblem{.heads = 2, .kv_heads = 1, .seq = 20, .kv_seq = 30, .head_dim = 4};

Tally tally_of(Algorithm algorithm) { return predict(algorithm, kProblem, {8, 8}).tally; }

/// "figure predicted counted", one after the other.
std::string text_of(const std::vector<Discrepancy>& found) {
  std::string text;
  for (const Discrepancy& d : found) {
    text += (text.empty() ? "" : ", ") + d.figure + " " + std::to_string(d.predicted.value()) + " " +
            std::to_string(d.counted.value());
  }
  return text;
}

TEST_CASE("a tally differs from itself nowhere") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    CHECK(discrepancies(tally_of(facts.algorithm), tally_of(facts.algorithm)).empty());
  }
}

TEST_CASE("a figure that differs is named with both of its values") {
  const Tally predicted = tally_of(Algorithm::flash2);
  Tally counted = predicted;
  counted.steps += 3;
  const auto found = discrepancies(predicted, counted);
  REQUIRE(found.size() == 1);
  CHECK(found[0].figure == "steps");
  CHECK(found[0].predicted == predicted.steps);
  CHECK(found[0].counted == predicted.steps + Count(3));
}

TEST_CASE("a kernel that only one of the two has is a difference, whichever has it") {
  const Tally usual = tally_of(Algorithm::flash2);
  Tally more = usual;
  more.kernels.push_back({"combine", Count(5)});
  const auto ours = discrepancies(more, usual);
  CHECK(text_of(ours) == "launch.combine.blocks 5 0");
  const auto theirs = discrepancies(usual, more);
  CHECK(text_of(theirs) == "launch.combine.blocks 0 5");
}

TEST_CASE("a kernel of no blocks that only one of the two has is a difference too") {
  const Tally usual = tally_of(Algorithm::flash2);
  Tally more = usual;
  more.kernels.push_back({"combine", Count(0)});
  CHECK(text_of(discrepancies(more, usual)) == "launch.combine.blocks 0 0");
  CHECK(text_of(discrepancies(usual, more)) == "launch.combine.blocks 0 0");
}

TEST_CASE("a kernel that is launched twice differs from one that is launched once") {
  const Tally usual = tally_of(Algorithm::flash2);
  Tally twice = usual;
  twice.kernels.push_back(twice.kernels.front());
  const std::string blocks = std::to_string(usual.kernels.front().blocks.value());
  CHECK(text_of(discrepancies(usual, twice)) == "launch.attention 2.blocks 0 " + blocks);
  CHECK(text_of(discrepancies(twice, usual)) == "launch.attention 2.blocks " + blocks + " 0");
}

TEST_CASE("every number that a tally holds is one of its figures") {
  // Changing any of them changes at least one figure.
  const Tally usual = tally_of(Algorithm::flash1);
  const auto seen = [&](auto change) {
    Tally changed = usual;
    change(changed);
    return !discrepancies(usual, changed).empty();
  };
  for (const Operand operand : kOperands) {
    CHECK(seen([&](Tally& t) { t.hbm_of(operand).read += Bytes(1); }));
    CHECK(seen([&](Tally& t) { t.hbm_of(operand).written += Bytes(1); }));
    CHECK(seen([&](Tally& t) { t.initial_of(operand).written += Bytes(1); }));
    CHECK(seen([&](Tally& t) { t.sm_of(operand).read += Bytes(1); }));
    CHECK(seen([&](Tally& t) { t.sm_of(operand).written += Bytes(1); }));
  }
  for (const Operation operation : kOperations) {
    CHECK(seen([&](Tally& t) { t.sram_of(operation).read += Bytes(1); }));
    CHECK(seen([&](Tally& t) { t.sram_of(operation).written += Bytes(1); }));
  }
  for (Flops Work::*flops :
       {&Work::products, &Work::scale, &Work::mask, &Work::softmax, &Work::rescale, &Work::normalise}) {
    CHECK(seen([&](Tally& t) { t.work.*flops += Flops(1); }));
  }
  CHECK(seen([](Tally& t) { t.work.exponentials += 1; }));
  CHECK(seen([](Tally& t) { t.peak_allocated += Bytes(1); }));
  CHECK(seen([](Tally& t) { t.kernels.front().blocks += 1; }));
  CHECK(seen([](Tally& t) { t.kernels.front().launches += 1; }));
  CHECK(seen([](Tally& t) { t.steps += 1; }));
}

TEST_CASE("the figures of a tally have names of their own, and its totals are the sums of its lines") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    std::set<std::string> names;
    Count hbm_read, hbm_total_read, sm_write, sm_total_write;
    for (const Figure& figure : figures_of(tally_of(facts.algorithm))) {
      CHECK(names.insert(figure.name).second);
      if (figure.name == "hbm.total.read_bytes")
        hbm_total_read = figure.value;
      else if (figure.name.starts_with("hbm.") && figure.name.ends_with("read_bytes"))
        hbm_read += figure.value;
      if (figure.name == "sm.total.write_bytes")
        sm_total_write = figure.value;
      else if (figure.name.starts_with("sm.") && figure.name.ends_with("write_bytes"))
        sm_write += figure.value;
    }
    CHECK(hbm_read == hbm_total_read);
    CHECK(sm_write == sm_total_write);
  }
}

TEST_CASE("one figure that leaves 64 bits makes the tally overflowed") {
  Tally tally = tally_of(Algorithm::eager);
  CHECK_FALSE(tally.overflowed());
  const auto leaves = [](auto spoil) {
    Tally spoilt;
    spoilt.kernels.push_back({"attention", 1});
    spoil(spoilt);
    return spoilt.overflowed();
  };
  static constexpr Count kLeft = Count::overflow();
  CHECK(leaves([](Tally& t) { t.hbm_of(Operand::Q).read = Bytes(kLeft); }));
  CHECK(leaves([](Tally& t) { t.initial_of(Operand::m).written = Bytes(kLeft); }));
  CHECK(leaves([](Tally& t) { t.sm_of(Operand::K).read = Bytes(kLeft); }));
  CHECK(leaves([](Tally& t) { t.sram_of(Operation::scale).read = Bytes(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.products = Flops(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.scale = Flops(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.mask = Flops(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.softmax = Flops(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.rescale = Flops(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.normalise = Flops(kLeft); }));
  CHECK(leaves([](Tally& t) { t.work.exponentials = kLeft; }));
  CHECK(leaves([](Tally& t) { t.peak_allocated = Bytes(kLeft); }));
  CHECK(leaves([](Tally& t) { t.kernels[0].blocks = kLeft; }));
  CHECK(leaves([](Tally& t) { t.steps = kLeft; }));
  // No line leaves, and their sum does.
  const Bytes most(std::int64_t{1} << 62);
  CHECK(leaves([&](Tally& t) { t.hbm_of(Operand::Q).read = t.hbm_of(Operand::K).read = most; }));
  CHECK(leaves([&](Tally& t) { t.sm_of(Operand::Q).read = t.sm_of(Operand::K).read = most; }));
}

}  // namespace
}  // namespace flashsim
