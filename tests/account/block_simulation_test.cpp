// Blocks on a machine: they do what the walks do, each tile is played once, and time is what the units need.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/account/block_simulation.hpp"
#include "core/account/blocks.hpp"
#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "core/problem/block_pattern.hpp"
#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

Machine machine() { return find_machine("h200").value(); }

struct Simulated {
  Prediction prediction;
  Simulation simulation;
};

Simulated simulated(const Problem& problem, const Method& method, Habits habits = {},
                    Machine on = machine()) {
  Simulated both{.prediction = predict(problem, method)};
  std::vector<Occupancy> kernels;
  for (const KernelLaunch& launch : both.prediction.tally.kernels) {
    kernels.push_back(occupancy_of(launch,
                                   footprint_of(method.algorithm, launch.name, problem, method.tiling), on,
                                   on.shared_memory_per_block));
  }
  auto result = simulate(problem, method, on, habits, kernels, both.prediction.tally,
                         Flops(problem_flops(problem).paper.value()));
  REQUIRE(result.ok());
  both.simulation = std::move(result).value();
  return both;
}

constexpr std::array kFollowed{Algorithm::standard,          Algorithm::eager,       Algorithm::three_pass,
                               Algorithm::three_pass_stored, Algorithm::flash1,      Algorithm::flash2,
                               Algorithm::split_kv,          Algorithm::block_sparse};

/// With what an algorithm needs beside its tiles.
Method method_of(Algorithm algorithm, const test::Shape& shape, Pass pass = Pass::forward) {
  Method method{.algorithm = algorithm, .tiling = shape.tiling, .pass = pass};
  if (algorithm == Algorithm::split_kv) method.splits = 1 + shape.problem.kv_seq % 4;
  if (algorithm == Algorithm::block_sparse) {
    method.pattern =
        BlockPattern::on_tiles(parse_pattern("strided:2").value(), shape.problem, shape.tiling).value();
  }
  return method;
}

/// Counts the blocks that a walk begins, kernel by kernel.
class BlockCount : public Listener {
 public:
  void step(const Step&) override { REQUIRE(begun.back() > 0); }
  void kernel(std::string_view, std::int64_t blocks) override {
    stated.push_back(blocks);
    begun.push_back(0);
  }
  void block() override { ++begun.back(); }
  std::vector<std::int64_t> stated, begun;
};

TEST_CASE("every walk begins as many blocks as its kernels are said to have, forward and backward") {
  test::RandomShapes shapes(11);
  for (int n = 0; n < 100; ++n) {
    const test::Shape shape = shapes.next(40);
    INFO(text_of(shape));
    for (const Algorithm algorithm : kFollowed) {
      for (const Pass pass : {Pass::forward, Pass::both}) {
        if (pass == Pass::both && !has_backward(algorithm)) continue;
        for (const bool deterministic : {false, true}) {
          BlockCount count;
          Method method = method_of(algorithm, shape, pass);
          method.deterministic = deterministic;
          walk(shape.problem, method, count);
          REQUIRE(count.begun == count.stated);
        }
      }
    }
  }
}

TEST_CASE("the blocks load and store what the account says crosses into and out of the SMs") {
  test::RandomShapes shapes(12);
  for (int n = 0; n < 60; ++n) {
    const test::Shape shape = shapes.next(40);
    INFO(text_of(shape));
    for (const Algorithm algorithm : kFollowed) {
      for (const Pass pass : {Pass::forward, Pass::both}) {
        if (pass == Pass::both && !has_backward(algorithm)) continue;
        for (const KeyOrder order : {KeyOrder::forward, KeyOrder::reverse}) {
          const Method method = method_of(algorithm, shape, pass);
          BlockSource source(shape.problem, method, {.key_order = order}, nullptr);
          Count loaded;
          Count stored;
          for (std::size_t k = 0; k < source.kernels().size(); ++k) {
            for (std::int64_t b = 0; b < source.kernels()[k].blocks; ++b) {
              const auto block = source.block(k, b);
              std::uint32_t moves = 0;
              for (const Beat& beat : block->beats) {
                moves += beat.last - beat.first;
                for (std::uint32_t i = beat.first; i < beat.last; ++i) {
                  const TileMove& move = block->moves[i];
                  REQUIRE(move.tile >= 0);
                  REQUIRE(move.tile < source.tiles_of(move.operand));
                  (move.way == TileMove::Way::store ? stored : loaded) += move.bytes;
                }
              }
              REQUIRE(moves == block->moves.size());
            }
          }
          const Flow sm = predict(shape.problem, method).tally.sm_total();
          const Count walks = walks_of(shape.problem, method);
          REQUIRE(Bytes(loaded * walks) == sm.read);
          REQUIRE(Bytes(stored * walks) == sm.written);
        }
      }
    }
  }
}

TEST_CASE("reads behind the L2 lie between each byte once and what crosses into the SMs") {
  test::RandomShapes shapes(13);
  Machine small = machine();
  for (int n = 0; n < 60; ++n) {
    const test::Shape shape = shapes.next(60);
    INFO(text_of(shape));
    small.l2 = Bytes(n % 3 == 0 ? 512 : n % 3 == 1 ? 8192 : 60 << 20);
    for (const Algorithm algorithm : kFollowed) {
      for (const LaunchOrder order : {LaunchOrder::rows, LaunchOrder::longest_first, LaunchOrder::heads_first,
                                      LaunchOrder::persistent}) {
        const Simulated s =
            simulated(shape.problem, method_of(algorithm, shape), {.launch_order = order}, small);
        const AfterL2& after = s.simulation.after_l2;
        const Flow sm = s.prediction.tally.sm_total();
        REQUIRE(after.uncached_read == sm.read);
        REQUIRE(after.hbm.read <= sm.read);
        REQUIRE(after.hbm.read >= after.compulsory_read);
        REQUIRE(after.hbm.written + after.waiting <= sm.written);
        REQUIRE(after.hit_rate() >= 0);
        REQUIRE(after.hit_rate() <= 1);
        if (small.l2 > Bytes(1 << 20)) REQUIRE(after.hbm.read == after.compulsory_read);
      }
    }
  }
}

TEST_CASE("what is compulsory for flash is Q, K and V, each once, however heads are grouped") {
  const Problem p{.heads = 8, .kv_heads = 2, .seq = 1000, .kv_seq = 1000, .head_dim = 64, .causal = false};
  const Simulated s = simulated(p, {});
  CHECK(s.simulation.after_l2.compulsory_read == input_bytes(p));
  CHECK(s.simulation.after_l2.hbm.read == input_bytes(p));
}

TEST_CASE("a persistent launch moves what a launch in rows moves, and twice the same is the same") {
  const Problem p{.heads = 2, .seq = 30000, .kv_seq = 30000};
  const Habits rows{};
  const Flow first = simulated(p, {}, rows).simulation.after_l2.hbm;
  CHECK(simulated(p, {}, rows).simulation.after_l2.hbm.read == first.read);
  CHECK(simulated(p, {}, {.launch_order = LaunchOrder::persistent}).simulation.after_l2.hbm.read ==
        first.read);
}

TEST_CASE("one block takes what its beats take, and the launch") {
  // One query tile of 128 rows, two key tiles, no mask: 2 · 4·128·128·64 FLOPs on one SM.
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 128, .kv_seq = 256, .head_dim = 64, .causal = false};
  const Machine m = machine();
  const Simulated s = simulated(p, {});
  const double products = 4.0 * 128 * 128 * 64 / (*m.flops_per_second.fp16 / 132 * 0.86);
  // Exponentials: one an entry and one a row; 5 other operations an entry (3 of softmax, 1 for P's type,
  // counted for each exponential) and d + 2 a row to rescale.
  const double exponentials = (128.0 * 128 + 128) / (16 * m.clock_hz);
  const double pointwise =
      (3.0 * 128 * 128 + 128.0 * (64 + 2) + (128.0 * 128 + 128)) / (*m.flops_per_second.fp32 / 2 / 132);
  const double softmax = exponentials + pointwise;
  const double beat = std::max(products, softmax) + 0.19 * std::min(products, softmax);
  const double finish = 128.0 * (64 + 1) / (*m.flops_per_second.fp32 / 2 / 132);
  REQUIRE(s.simulation.kernels.size() == 1);
  const double load_q = 128.0 * 64 * 2 / (128 * m.clock_hz);
  const double store = (128.0 * 64 * 2 + 128 * 4) / (128 * m.clock_hz);
  // What is loaded comes from memory: 5 % longer.
  const double expected = 1e-6 + 1.05 * (load_q + 2 * beat) + std::max(finish, store);
  CHECK(s.simulation.kernels[0].blocks.value == Approx(expected).epsilon(1e-5));
  CHECK(s.simulation.time->total.value ==
        Approx(s.simulation.kernels[0].blocks.value + m.launch_seconds).epsilon(1e-9));
}

TEST_CASE("blocks that share an SM wait for the unit that both need") {
  const Problem p{
      .heads = 264, .kv_heads = 264, .seq = 128, .kv_seq = 1024, .head_dim = 128, .causal = false};
  const double one =
      simulated(p, {}, {.overlap = Overlap::serial, .blocks_per_sm = 1}).simulation.time->total.value;
  const double two =
      simulated(p, {}, {.overlap = Overlap::serial, .blocks_per_sm = 2}).simulation.time->total.value;
  // Serial blocks leave units idle, which a second block fills.
  CHECK(two < one);
  CHECK(two > one / 2);
}

TEST_CASE("without a rate there is traffic and no time, and the reason is told") {
  Machine m = machine();
  m.flops_per_second.fp16.reset();
  const Simulated s = simulated({.heads = 1, .kv_heads = 1, .seq = 256, .kv_seq = 256}, {}, {}, m);
  CHECK_FALSE(s.simulation.time.has_value());
  CHECK(s.simulation.no_time == "no fp16 rate of the H200 SXM 141 GB is known, so no time can be told");
  CHECK(s.simulation.after_l2.hbm.read == Bytes(3 * 256 * 128 * 2));
}

TEST_CASE("what is too much to follow, or to hold, is refused with the number") {
  const auto error = [](const Problem& problem, Habits habits) {
    const Prediction prediction = predict(problem, {});
    const auto result = simulate(problem, {}, machine(), habits, {}, prediction.tally, Flops(1));
    REQUIRE_FALSE(result.ok());
    return result.error().message;
  };
  CHECK(error({.seq = 1 << 24, .kv_seq = 1 << 24}, {}) ==
        "B 1 · H 32 · N 16777216 · d 128 take 2199061004288 steps, and at most 10000000000 are followed on a "
        "machine");
  const Problem long_one{.heads = 1, .kv_heads = 1, .seq = 1 << 20, .kv_seq = 1 << 20};
  const Method flash1{.algorithm = Algorithm::flash1};
  const auto whole = simulate(long_one, flash1, machine(), {}, {}, predict(long_one, flash1).tally, Flops(1));
  REQUIRE_FALSE(whole.ok());
  CHECK(whole.error().message.find("of a walk that has no parts") != std::string::npos);
  CHECK(error({.seq = 128, .kv_seq = 128}, {.blocks_per_sm = 33}) ==
        "--blocks-per-sm is 33, and an SM of the H200 SXM 141 GB holds 32 at most");
}

TEST_CASE("standard attention is bound by HBM where flash is bound by its products") {
  const Problem p{.heads = 32, .kv_heads = 32, .seq = 4096, .kv_seq = 4096};
  CHECK(simulated(p, {.algorithm = Algorithm::standard}).simulation.time->bound == "hbm");
  CHECK(simulated(p, {}).simulation.time->bound == "tensor");
}

}  // namespace
}  // namespace flashsim
