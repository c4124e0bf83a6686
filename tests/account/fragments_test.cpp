// Kernels whose warps multiply fragments from their registers (mma.sync): what passes through shared memory
// for them, and the time that they take.
#include <algorithm>
#include <cmath>

#include "core/account/block_simulation.hpp"
#include "core/account/blocks.hpp"
#include "core/account/clock.hpp"
#include "core/account/prediction.hpp"
#include "core/problem/kernel.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

Machine machine() { return find_machine("h200").value(); }

constexpr Habits kWarpsOf32{.fragments = Fragments{.warp_rows = 32}};

Simulation simulated(const Problem& problem, const Method& method, const Habits& habits,
                     const Machine& on = machine()) {
  const Prediction prediction = predict(problem, method);
  std::vector<Occupancy> kernels;
  for (const KernelLaunch& launch : prediction.tally.kernels) {
    kernels.push_back(occupancy_of(launch,
                                   footprint_of(method.algorithm, launch.name, problem, method.tiling), on,
                                   on.shared_memory_per_block));
  }
  auto result = simulate(problem, method, on, habits, kernels, prediction.tally,
                         Flops(problem_flops(problem).paper.value()));
  REQUIRE(result.ok());
  return std::move(result).value();
}

/// Bytes through shared memory of the first block of a kernel.
double shared_bytes(const Problem& problem, const Method& method, const Habits& habits,
                    std::size_t kernel = 0) {
  BlockSource source(problem, method, habits, nullptr);
  double sum = 0;
  for (const Beat& beat : source.block(kernel, 0)->beats) sum += static_cast<double>(beat.shared_bytes);
  return sum;
}

double time_of(const Simulation& simulation) { return simulation.time->total.value; }

TEST_CASE("each warp reads all keys and values of a tile, and its queries again where it doesn't keep them") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 128, .kv_seq = 256, .head_dim = 64, .causal = false};
  const Method method{.tiling = {128, 64}};
  const double query_tile = 128.0 * 64 * 2;
  const double key_tile = 64.0 * 64 * 2;
  const double moved = query_tile + 4 * 2 * key_tile + query_tile + 128 * 4;  // Q, K, V; O, L
  for (const std::int64_t warps : {1, 2, 4, 8}) {
    Habits habits{.fragments = Fragments{.warp_rows = 128 / warps}};
    CHECK(shared_bytes(p, method, habits) ==
          moved + 4 * (query_tile + static_cast<double>(warps) * 2 * key_tile));
    habits.fragments->queries_in_registers = true;
    CHECK(shared_bytes(p, method, habits) == moved + 4 * static_cast<double>(warps) * 2 * key_tile);
  }
}

TEST_CASE("warps with keys of their own read those once, and queries once each; dS passes through to dQ") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 64, .kv_seq = 128, .head_dim = 64, .causal = false};
  const Method method{.tiling = {64, 128}, .pass = Pass::backward, .sums_in_l2 = true};
  const Habits habits{.fragments = Fragments{.warp_rows = 64, .warp_keys = 16}};
  const double queries = 64.0 * 64 * 2;
  const double keys = 128.0 * 64 * 2;
  // Q, dO, K, V, L, D in; dK, dV and what is added to dQ out.
  const double moved = 2 * queries + 4 * keys + 2 * 64 * 4 + 64 * 64 * 4;
  const double score_products = 2 * (keys + 8 * queries);            // S and dP
  const double key_products = 2 * 8 * queries;                       // dV and dK
  const double query_product = 2 * keys + (1 + 4) * 64.0 * 128 * 2;  // two by four warps; dS written and read
  CHECK(shared_bytes(p, method, habits, 1) == moved + score_products + key_products + query_product);
}

TEST_CASE("one block takes its products and its softmax, and a fifth of what loads of fragments take") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 128, .kv_seq = 128, .head_dim = 64, .causal = false};
  const Machine m = machine();
  const Simulation s = simulated(p, {}, kWarpsOf32);
  const double products = 4.0 * 128 * 128 * 64 / (*m.fragment_flops_per_second.fp16 / 132);
  const double lanes = *m.flops_per_second.fp32 / 2 / 132;
  const double softmax = (128.0 * 128 + 128) / (16 * m.clock_hz) +
                         (3.0 * 128 * 128 + 128.0 * (64 + 2) + (128.0 * 128 + 128)) / lanes;
  const double bytes = 128 * m.clock_hz;
  const double loads = (2 + 4 * 2 + 1) * 128.0 * 64 * 2 / bytes;  // K, V in; by four warps; Q again
  const double beat = products + softmax + 0.19 * loads;
  const double load_q = 128.0 * 64 * 2 / bytes;
  const double finish = 128.0 * (64 + 1) / lanes;
  const double store = (128.0 * 64 * 2 + 128 * 4) / bytes;
  REQUIRE(loads < products + softmax);
  const double last = std::max(finish, store) + 0.19 * std::min(finish, store);
  // Four warps leave an SM's schedulers idle a fifth of the time.
  CHECK(s.kernels[0].blocks.value == Approx(1e-6 + 1.25 * (1.05 * (load_q + beat) + last)).epsilon(1e-5));
}

TEST_CASE("blocks of an SM take turns, and a second one of four warps fills what the first leaves idle") {
  const Problem p{
      .heads = 264, .kv_heads = 264, .seq = 128, .kv_seq = 4096, .head_dim = 128, .causal = false};
  Habits habits = kWarpsOf32;
  habits.blocks_per_sm = 1;
  const double one = time_of(simulated(p, {.tiling = {128, 64}}, habits));
  habits.blocks_per_sm = 2;
  const double two = time_of(simulated(p, {.tiling = {128, 64}}, habits));
  CHECK(two == Approx(one / 1.25).epsilon(0.03));
  habits.fragments->warps = 8;
  CHECK(time_of(simulated(p, {.tiling = {128, 64}}, habits)) == Approx(two).epsilon(0.03));
  habits.blocks_per_sm = 1;
  CHECK(time_of(simulated(p, {.tiling = {128, 64}}, habits)) == Approx(two).epsilon(0.03));
}

TEST_CASE("warps that share the rows of a tile hide less of their loads") {
  const Problem p;
  const Clock apart = Clock::of(machine(), p, {.fragments = Fragments{}}).value();
  const Clock sharing = Clock::of(machine(), p, {.fragments = Fragments{.warp_keys = 16}}).value();
  const Demand products{.products = 1e9};
  const Demand both{.products = 1e9, .shared_bytes = 1e6};
  CHECK(sharing.busiest(products) == apart.busiest(products));
  CHECK(sharing.busiest(both) > apart.busiest(both));
  CHECK(sharing.busiest(both) <
        products.products / 1e9 * sharing.busiest(products) + both.shared_bytes / 2e11);
}

TEST_CASE("a ragged tile takes the time of a whole one") {
  Problem p{.heads = 132, .kv_heads = 132, .seq = 128, .kv_seq = 4096, .head_dim = 128, .causal = false};
  const double whole = time_of(simulated(p, {.tiling = {128, 64}}, kWarpsOf32));
  p.seq = 5;
  CHECK(time_of(simulated(p, {.tiling = {128, 64}}, kWarpsOf32)) == Approx(whole).epsilon(0.03));
}

TEST_CASE("fragments have a rate of their own on Hopper, and the type's where the machine tells no other") {
  const Problem p{.heads = 132, .kv_heads = 132, .seq = 4096, .kv_seq = 4096, .causal = false};
  Machine m = machine();
  const Demand products{.products = 1e9};
  CHECK(Clock::of(m, p, kWarpsOf32)->busiest(products) > 1.3 * Clock::of(m, p)->busiest(products));
  m.fragment_flops_per_second.fp16.reset();
  CHECK(Clock::of(m, p, kWarpsOf32)->busiest(products) == Clock::of(m, p)->busiest(products));
  const Machine a100 = find_machine("a100").value();
  CHECK(Clock::of(a100, p, kWarpsOf32)->busiest(products) == Clock::of(a100, p)->busiest(products));
}

TEST_CASE("the upper rungs take longer than the schedule at its best, and no kernel is left out") {
  const Problem p{.heads = 32, .kv_heads = 8, .seq = 2048, .kv_seq = 2048};
  for (const Kernel kernel : {Kernel::flash_tensor, Kernel::flash_split_kv, Kernel::flash_backward}) {
    INFO(facts_of(kernel).name);
    Method method = method_of(kernel, p);
    if (kernel == Kernel::flash_split_kv) method.splits = 3;
    const Simulation real = simulated(p, method, habits_of(kernel, p));
    const Simulation best = simulated(p, method, {});
    CHECK(time_of(real) > time_of(best));
    double sum = 0;
    for (const SimulatedKernel& each : real.kernels) sum += each.total.value;
    CHECK(time_of(real) == Approx(sum).epsilon(1e-9));
    CHECK(real.kernels.size() == predict(p, method).tally.kernels.size());
  }
}

TEST_CASE("a decoding step takes the time of its cache at the rate of HBM, and two launches") {
  const Problem p{.batch = 16, .heads = 32, .kv_heads = 8, .seq = 1, .kv_seq = 32768};
  Method method = method_of(Kernel::flash_split_kv, p);
  method.splits = 4;
  const Machine m = find_machine("h200-measured").value();
  const Simulation s = simulated(p, method, habits_of(Kernel::flash_split_kv, p), m);
  REQUIRE(s.kernels.size() == 2);
  CHECK(s.kernels[0].bound == "hbm");
  const double cache = ((whole_size(Operand::K, p) + whole_size(Operand::V, p)) / m.memory_bandwidth).value;
  CHECK(time_of(s) > cache + 2 * m.launch_seconds);
  CHECK(time_of(s) < 1.15 * cache);
  // Combining isn't held to the blocks that fit beside one another's shared memory.
  CHECK(s.kernels[1].blocks_per_sm > s.kernels[0].blocks_per_sm);
  CHECK(s.kernels[1].total.value < 0.05 * s.kernels[0].total.value);
}

}  // namespace
}  // namespace flashsim
