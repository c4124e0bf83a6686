// The check is checked: an error planted in a closed form or in a walk is reported, under the names of
// the figures that it falsifies and no other.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/study/account.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/followed_walk.hpp"
#include "tests/pattern_for.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using Names = std::set<std::string>;

constexpr Tiling kTiles{3, 2};

/// Ragged both ways, with masked, whole and empty tile pairs, in two groups of heads.
AccountRequest request_for(Algorithm algorithm) {
  return {.algorithm = algorithm,
          .batch = 2,
          .heads = 4,
          .kv_heads = 2,
          .seq = 8,
          .kv_seq = 5,
          .head_dim = 3,
          .alignment = CausalAlignment::bottom_right,
          .tiles = {kTiles.query_rows, kTiles.key_rows},
          .splits = algorithm == Algorithm::split_kv ? std::optional(SplitsRequest{2}) : std::nullopt,
          .pattern = test::pattern_for(algorithm)};
}

Problem problem() { return resolve_problem(request_for(Algorithm::flash2)).value(); }

Method method_of(Algorithm algorithm) {
  Method method{.algorithm = algorithm, .tiling = kTiles};
  if (algorithm == Algorithm::split_kv) method.splits = 2;
  if (const auto pattern = test::pattern_for(algorithm)) {
    method.pattern = BlockPattern::on_tiles(*pattern, problem(), kTiles).value();
  }
  return method;
}

AccountReport account_with(Algorithm algorithm, const AccountSources& sources) {
  auto report = make_account(request_for(algorithm), {}, sources);
  REQUIRE(test::message_of(report) == test::kNoError);
  return std::move(report).value();
}

Names reported(const AccountReport& report) {
  Names names;
  for (const Discrepancy& d : report.discrepancies) names.insert(d.figure);
  return names;
}

/// What is reported of `algorithm` when its closed form is changed.
Names after_changed_form(Algorithm algorithm, const std::function<void(Tally&)>& change) {
  AccountSources sources;
  sources.predict = [&](const Problem& p, const Method& method) {
    Prediction prediction = predict(p, method);
    change(prediction.tally);
    return prediction;
  };
  const AccountReport report = account_with(algorithm, sources);
  CHECK(report.predicted_equals_counted() == false);
  return reported(report);
}

/// What is missing where a kernel is.
Names figures_of_launch(const KernelLaunch& launch) {
  Names names{"launch." + launch.name + ".blocks"};
  if (launch.launches != Count(1)) names.insert("launch." + launch.name + ".launches");
  return names;
}

TEST_CASE("nothing is reported of what has no error in it") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    const AccountReport report = account_with(facts.algorithm, {});
    CHECK(report.predicted_equals_counted() == true);
    CHECK(reported(report) == Names{});
  }
}

TEST_CASE("one byte too many in any line of a closed form is reported, with the total that it enters") {
  for (const auto& facts : kAlgorithms) {
    for (const Operand operand : kOperands) {
      const std::string name(name_of(operand));
      const auto changed = [&](auto change) { return after_changed_form(facts.algorithm, change); };
      CAPTURE(facts.name, name);
      CHECK(changed([&](Tally& t) { t.hbm_of(operand).read += Bytes(1); }) ==
            Names{"hbm." + name + ".read_bytes", "hbm.total.read_bytes"});
      CHECK(changed([&](Tally& t) { t.hbm_of(operand).written += Bytes(1); }) ==
            Names{"hbm." + name + ".write_bytes", "hbm.total.write_bytes"});
      CHECK(changed([&](Tally& t) { t.initial_of(operand).written += Bytes(1); }) ==
            Names{"hbm." + name + " initial.write_bytes", "hbm.total.write_bytes"});
      CHECK(changed([&](Tally& t) { t.sm_of(operand).read += Bytes(1); }) ==
            Names{"sm." + name + ".read_bytes", "sm.total.read_bytes"});
      CHECK(changed([&](Tally& t) { t.sm_of(operand).written += Bytes(1); }) ==
            Names{"sm." + name + ".write_bytes", "sm.total.write_bytes"});
    }
    for (const Operation operation : kOperations) {
      const std::string name(name_of(operation));
      CAPTURE(facts.name, name);
      CHECK(after_changed_form(facts.algorithm, [&](Tally& t) { t.sram_of(operation).read += Bytes(1); }) ==
            Names{"sram." + name + ".read_bytes", "sram.total.read_bytes"});
      CHECK(after_changed_form(facts.algorithm, [&](Tally& t) {
              t.sram_of(operation).written += Bytes(1);
            }) == Names{"sram." + name + ".write_bytes", "sram.total.write_bytes"});
    }
  }
}

TEST_CASE("one FLOP, block, step or byte of the peak too many in a closed form is reported alone") {
  for (const auto& facts : kAlgorithms) {
    CAPTURE(facts.name);
    const auto changed = [&](auto change) { return after_changed_form(facts.algorithm, change); };
    CHECK(changed([](Tally& t) { t.work.products += Flops(1); }) == Names{"flops.executed"});
    CHECK(changed([](Tally& t) { t.work.scale += Flops(1); }) == Names{"flops.scale"});
    CHECK(changed([](Tally& t) { t.work.mask += Flops(1); }) == Names{"flops.mask"});
    CHECK(changed([](Tally& t) { t.work.softmax += Flops(1); }) == Names{"flops.softmax"});
    CHECK(changed([](Tally& t) { t.work.rescale += Flops(1); }) == Names{"flops.rescale"});
    CHECK(changed([](Tally& t) { t.work.normalise += Flops(1); }) == Names{"flops.normalise"});
    CHECK(changed([](Tally& t) { t.work.exponentials += 1; }) == Names{"flops.exponentials"});
    CHECK(changed([](Tally& t) { t.peak_allocated += Bytes(1); }) == Names{"peak_allocated_bytes"});
    CHECK(changed([](Tally& t) { t.steps += 1; }) == Names{"steps"});
    const KernelLaunch last = account_with(facts.algorithm, {}).tally().kernels.back();
    const std::string blocks = "launch." + last.name + ".blocks";
    CHECK(changed([](Tally& t) { t.kernels.back().blocks += 1; }) == Names{blocks});
    CHECK(changed([](Tally& t) { t.kernels.back().launches += 1; }) ==
          Names{"launch." + last.name + ".launches"});
    CHECK(changed([](Tally& t) { t.kernels.pop_back(); }) == figures_of_launch(last));
    CHECK(changed([](Tally& t) {
            t.kernels.push_back({"another", Count(1)});
          }) == Names{"launch.another.blocks"});
  }
}

TEST_CASE("a line that a closed form leaves out is reported") {
  for (const auto& facts : kAlgorithms) {
    const Tally whole = account_with(facts.algorithm, {}).tally();
    for (const Operand operand : kOperands) {
      if (whole.hbm_of(operand).read == Bytes()) continue;
      CAPTURE(facts.name, name_of(operand));
      CHECK(after_changed_form(facts.algorithm, [&](Tally& t) { t.hbm_of(operand).read = Bytes(); }) ==
            Names{"hbm." + std::string(name_of(operand)) + ".read_bytes", "hbm.total.read_bytes"});
    }
  }
}

/// Hands on a walk in which step number `at` is done `times` times: 0 drops it, 2 doubles it.
class ChangedStep : public Listener {
 public:
  ChangedStep(Listener& next, std::size_t at, int times) : next_(next), at_(at), times_(times) {}
  void step(const Step& step) override {
    const int times = seen_++ == at_ ? times_ : 1;
    for (int n = 0; n < times; ++n) next_.step(step);
  }
  void kernel(std::string_view name, std::int64_t blocks) override { next_.kernel(name, blocks); }
  void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) override {
    next_.launches(name, launches, blocks);
  }
  void allocate(Operand operand, Bytes size) override { next_.allocate(operand, size); }
  void release(Operand operand, Bytes size) override { next_.release(operand, size); }

 private:
  Listener& next_;
  std::size_t at_;
  int times_;
  std::size_t seen_ = 0;
};

AccountReport after_changed_step(Algorithm algorithm, std::size_t at, int times) {
  AccountSources sources;
  sources.walk = [&](const Problem& p, const Method& method, Listener& listener) {
    ChangedStep changed(listener, at, times);
    walk(p, method, changed);
  };
  return account_with(algorithm, sources);
}

/// The figures into which a step enters.
Names figures_of_step(const Step& step) {
  using enum Operation;
  const std::string operand(name_of(step.operand));
  const std::string operation(name_of(step.operation));
  Names names{"steps"};
  const auto add = [&](const std::string& level, const std::string& line, const std::string& direction) {
    names.insert(level + "." + line + direction);
    names.insert(level + ".total" + direction);
  };
  switch (step.operation) {
    case initialise:
      add("hbm", operand + " initial", ".write_bytes");
      add("sm", operand, ".write_bytes");
      return names;
    case load:
      if (!step.again) add("hbm", operand, ".read_bytes");
      add("sm", operand, ".read_bytes");
      add("sram", "load", ".write_bytes");
      return names;
    case store:
      add("hbm", operand, ".write_bytes");
      add("sm", operand, ".write_bytes");
      add("sram", "store", ".read_bytes");
      return names;
    case reset:
    case discard: return names;
    case mask:
      if (step.idle) return names;
      names.insert("flops.mask");
      break;
    case scores:
    case accumulate: names.insert("flops.executed"); break;
    case scale: names.insert("flops.scale"); break;
    case softmax:
    case online_softmax:
      names.insert("flops.softmax");
      names.insert("flops.exponentials");
      break;
    case rescale:
    case combine:
      names.insert("flops.rescale");
      names.insert("flops.exponentials");
      break;
    case finish:
      names.insert("flops.normalise");
      if (step.operand == Operand::l) return names;
      break;
    case row_maximum:
      names.insert("flops.softmax");
      add("sram", operation, ".read_bytes");
      return names;
    case denominator:
      names.insert("flops.softmax");
      names.insert("flops.exponentials");
      if (step.operand == Operand::P) break;
      add("sram", operation, ".read_bytes");
      return names;
    case probabilities:
      names.insert("flops.softmax");
      names.insert("flops.exponentials");
      break;
    default: FAIL("a step that no forward walk has: " << operation);
  }
  add("sram", operation, ".read_bytes");
  add("sram", operation, ".write_bytes");
  return names;
}

TEST_CASE("any one step that a walk leaves out or does twice is reported, in the figures that it enters") {
  for (const auto& facts : kAlgorithms) {
    const FollowedWalk whole(problem(), method_of(facts.algorithm));
    for (std::size_t at = 0; at < whole.steps().size(); ++at) {
      for (const int times : {0, 2}) {
        const AccountReport report = after_changed_step(facts.algorithm, at, times);
        CAPTURE(facts.name, at, times);
        REQUIRE(report.predicted_equals_counted() == false);
        REQUIRE(reported(report) == figures_of_step(whole.steps()[at]));
      }
    }
  }
}

TEST_CASE("a load left out or done twice is off by the bytes of its tile, for every walk") {
  for (const auto& facts : kAlgorithms) {
    const FollowedWalk whole(problem(), method_of(facts.algorithm));
    for (std::size_t at = 0; at < whole.steps().size(); ++at) {
      const Step& step = whole.steps()[at];
      if (step.operation != Operation::load || step.again) continue;
      const Count walks = walks_of(problem(), method_of(facts.algorithm));
      const Count tile = tile_bytes(step, problem()).count * walks;
      const std::string figure = "hbm." + std::string(name_of(step.operand)) + ".read_bytes";
      for (const int times : {0, 2}) {
        for (const Discrepancy& d : after_changed_step(facts.algorithm, at, times).discrepancies) {
          if (d.figure != figure) continue;
          CAPTURE(facts.name, at, times);
          REQUIRE((times == 0 ? d.predicted - d.counted : d.counted - d.predicted) == tile);
        }
      }
    }
  }
}

/// Hands on a walk without its first kernel, or without what it allocates, or with its loads marked as
/// repeats, or with its masks idle.
struct Altered : Listener {
  explicit Altered(Listener& listener) : next(listener) {}
  void step(const Step& step) override {
    Step altered = step;
    if (change_step) change_step(altered);
    next.step(altered);
  }
  void kernel(std::string_view name, std::int64_t blocks) override {
    for (int n = 0; n < kernel_times; ++n) next.kernel(name, blocks * block_factor);
  }
  void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) override {
    for (int n = 0; n < kernel_times; ++n) next.launches(name, launches, blocks * block_factor);
  }
  void allocate(Operand operand, Bytes size) override {
    if (!drop_allocations) next.allocate(operand, size);
  }
  void release(Operand operand, Bytes size) override {
    if (!drop_releases) next.release(operand, size);
  }

  Listener& next;
  std::function<void(Step&)> change_step;
  int kernel_times = 1;
  int block_factor = 1;
  bool drop_allocations = false;
  bool drop_releases = false;
};

Names after_alteration(Algorithm algorithm, const std::function<void(Altered&)>& alter) {
  AccountSources sources;
  sources.walk = [&](const Problem& p, const Method& method, Listener& listener) {
    Altered altered(listener);
    alter(altered);
    walk(p, method, altered);
  };
  return reported(account_with(algorithm, sources));
}

TEST_CASE("kernels that a walk forgets or launches with other blocks are reported") {
  for (const auto& facts : kAlgorithms) {
    CAPTURE(facts.name);
    Names blocks;
    Names all;
    for (const KernelLaunch& launch : predict(problem(), method_of(facts.algorithm)).tally.kernels) {
      blocks.insert("launch." + launch.name + ".blocks");
      all.merge(figures_of_launch(launch));
    }
    CHECK(after_alteration(facts.algorithm, [](Altered& a) { a.block_factor = 2; }) == blocks);
    CHECK(after_alteration(facts.algorithm, [](Altered& a) { a.kernel_times = 0; }) == all);
  }
}

TEST_CASE("kernels that a walk launches twice are reported") {
  for (const auto& facts : kAlgorithms) {
    CAPTURE(facts.name);
    Names again;
    for (KernelLaunch launch : predict(problem(), method_of(facts.algorithm)).tally.kernels) {
      launch.name += " 2";
      again.merge(figures_of_launch(launch));
    }
    CHECK(after_alteration(facts.algorithm, [](Altered& a) { a.kernel_times = 2; }) == again);
  }
}

TEST_CASE("memory that a walk forgets to take or to give back is reported") {
  for (const auto& facts : kAlgorithms) {
    CAPTURE(facts.name);
    CHECK(after_alteration(facts.algorithm, [](Altered& a) {
            a.drop_allocations = a.drop_releases = true;
          }) == Names{"peak_allocated_bytes"});
  }
  CHECK(after_alteration(Algorithm::eager, [](Altered& a) { a.drop_releases = true; }) ==
        Names{"peak_allocated_bytes"});
}

TEST_CASE("loads that a walk wrongly marks as repeats are missing from HBM traffic alone") {
  CHECK(after_alteration(Algorithm::flash2, [](Altered& a) {
          a.change_step = [](Step& s) { s.again = s.again || s.operand == Operand::K; };
        }) == Names{"hbm.K.read_bytes", "hbm.total.read_bytes"});
  CHECK(after_alteration(Algorithm::standard, [](Altered& a) {
          a.change_step = [](Step& s) { s.again = false; };
        }) == Names{"hbm.Q.read_bytes", "hbm.K.read_bytes", "hbm.V.read_bytes", "hbm.total.read_bytes"});
}

TEST_CASE("rows of padding that a walk wrongly counts are reported") {
  for (const auto& facts : kAlgorithms) {
    CAPTURE(facts.name);
    const Names names = after_alteration(facts.algorithm, [](Altered& a) {
      a.change_step = [](Step& s) { s.rows.end = s.rows.begin + kTiles.query_rows; };
    });
    CHECK(names.contains("hbm.O.write_bytes"));
    CHECK(names.contains("flops.executed"));
    CHECK_FALSE(names.contains("hbm.K.read_bytes"));
  }
}

}  // namespace
}  // namespace flashsim
