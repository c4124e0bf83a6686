// What the kernels of the ladder work on, and how they behave.
#include "core/problem/kernel.hpp"
#include "core/problem/machine.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("the kernels on tensor units multiply fragments, and the others don't") {
  for (const KernelFacts& facts : kKernels) {
    INFO(facts.name);
    const bool tensor = facts.storage.data() == kTensorTypes.data();
    for (const std::int64_t d : {32, 64, 96, 128, 256}) {
      if (d > facts.largest_head_dim) continue;
      const Problem p{.head_dim = d};
      CHECK(habits_of(facts.kernel, p).fragments.has_value() == tensor);
      if (!tensor) continue;
      const Fragments fragments = *habits_of(facts.kernel, p).fragments;
      const Tiling tiling = method_of(facts.kernel, p).tiling;
      CHECK(fragments.warp_rows % 16 == 0);
      CHECK(tiling.query_rows % fragments.warp_rows == 0);
      if (fragments.warp_keys) CHECK(tiling.key_rows % *fragments.warp_keys == 0);
    }
  }
}

TEST_CASE("the tiles of each tiled kernel fit a block of the smallest data-centre GPU that it runs on") {
  const Machine a100 = find_machine("a100").value();
  for (const KernelFacts& facts : kKernels) {
    if (!facts_of(facts.algorithm).tiled) continue;
    for (const std::int64_t d : {64, 128, 256}) {
      if (d > facts.largest_head_dim || facts.kernel == Kernel::flash_fp32) continue;
      Problem p{.head_dim = d};
      p.storage = facts.storage.front();
      INFO(facts.name << " at " << d);
      if (facts.kernel == Kernel::flash_split_kv) p.seq = 1;
      CHECK(fits(p, method_of(facts.kernel, p).tiling, a100.shared_memory_per_block));
    }
  }
}

TEST_CASE("backward packs the heads of a group and leaves the sum of dQ to the L2") {
  const Problem p{.heads = 8, .kv_heads = 2};
  const Method method = method_of(Kernel::flash_backward, p);
  CHECK(method.packs_groups);
  CHECK(method.sums_in_l2);
  CHECK(walks_of(p, method) == Count(2));
  CHECK(walks_of(p, method_of(Kernel::flash_tensor, p)) == Count(8));
  Method forward_too = method;
  forward_too.pass = Pass::both;
  CHECK(walks_of(p, forward_too) == Count(8));
}

}  // namespace
}  // namespace flashsim
