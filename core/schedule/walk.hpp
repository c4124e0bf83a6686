// A walk is the ordered steps of one algorithm on one head. It computes nothing: listeners follow it,
// and so the arithmetic, the byte counts and the replay come from the same steps.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/schedule/step.hpp"

namespace flashsim {

class Listener {
 public:
  virtual ~Listener() = default;
  /// One operation on one tile.
  virtual void step(const Step& step) = 0;
  /// The next thread block of the kernel starts: the steps up to the one after it are its own.
  virtual void block() {}
  /// A kernel starts, with so many thread blocks for this head.
  virtual void kernel(std::string_view name, std::int64_t blocks) {
    (void)name;
    (void)blocks;
  }
  /// A kernel is launched so many times, with so many thread blocks for this head in all of them together.
  /// Told before the first.
  virtual void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) {
    (void)launches;
    kernel(name, blocks);
  }
  /// Memory of `size`, over all heads, is taken, or given back.
  virtual void allocate(Operand operand, Bytes size) {
    (void)operand;
    (void)size;
  }
  virtual void release(Operand operand, Bytes size) {
    (void)operand;
    (void)size;
  }
};

/// Walks one head by `method`, forward, backward or both, as it says. All heads of a problem walk alike;
/// walks_of says how many walks they are. What forward leaves in memory stays there for backward; backward
/// alone finds it among its inputs.
void walk(const Problem& problem, const Method& method, Listener& listener);

/// The same, forward, of an algorithm that has nothing to choose but its tiles.
inline void walk(Algorithm algorithm, const Problem& problem, Tiling tiling, Listener& listener) {
  walk(problem, Method{.algorithm = algorithm, .tiling = tiling}, listener);
}

/// The numbers of a walk's query tiles.
Range query_tiles_of(const Problem& problem, const Method& method);

/// The steps of a forward walk that belong to query tiles [begin, end). No query tile needs what another
/// made, so the parts of a walk can be taken side by side. What the parts share is a step of each of them,
/// marked `elsewhere` in all but the first; kernels and memory are told by the part that begins with tile 0.
void walk_part(const Problem& problem, const Method& method, Range query_tiles, Listener& listener);

inline void walk_part(Algorithm algorithm, const Problem& problem, Tiling tiling, Range query_tiles,
                      Listener& listener) {
  walk_part(problem, Method{.algorithm = algorithm, .tiling = tiling}, query_tiles, listener);
}

/// The same part with all its kernels told, whichever tile it begins with: the blocks that work on these
/// tiles.
void walk_blocks(const Problem& problem, const Method& method, Range query_tiles, Listener& listener);

/// `algorithm` has a backward walk.
constexpr bool has_backward(Algorithm algorithm) {
  return algorithm == Algorithm::standard || algorithm == Algorithm::eager ||
         algorithm == Algorithm::flash1 || algorithm == Algorithm::flash2;
}

/// Walks one head backward, whatever pass `method` names. Its algorithm has a backward walk.
void walk_backward(const Problem& problem, const Method& method, Listener& listener);

inline void walk_backward(Algorithm algorithm, const Problem& problem, Tiling tiling, Listener& listener) {
  walk_backward(problem, Method{.algorithm = algorithm, .tiling = tiling}, listener);
}

/// The kernels of flash2's backward walk, where it isn't deterministic. `conversion` is empty where dQ is
/// summed in the storage type.
enum class BackwardKernel { deltas, gradients, conversion };

/// The steps of one of them that belong to tiles [begin, end): query tiles, but key tiles of `gradients`.
/// Parts may be taken side by side, where key tiles add to a query tile's dQ in rising order.
void walk_backward_part(BackwardKernel kernel, const Problem& problem, Tiling tiling, Range tiles,
                        Listener& listener);

// One file each; the walks above call the one that is named.
void walk_standard(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_eager(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_three_pass(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_flash1(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_flash2(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_memory_efficient(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_split_kv(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_block_sparse(const Problem& problem, const Method& method, Range part, Listener& listener);
void walk_standard_backward(const Problem& problem, const Method& method, Listener& listener);
void walk_eager_backward(const Problem& problem, const Method& method, Listener& listener);
void walk_flash1_backward(const Problem& problem, const Method& method, Listener& listener);
void walk_flash2_backward(const Problem& problem, const Method& method, Listener& listener);
void walk_flash2_backward(BackwardKernel kernel, const Problem& problem, Tiling tiling, Range tiles,
                          Listener& listener);

}  // namespace flashsim
