// What each thread block of a kernel does, in order: the tiles that it loads and stores, and its beats (what
// it does for one tile) with their time. Recorded from the walks, one query tile's blocks at a time, and kept
// while they are few, so that long sequences need no long lists.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/account/clock.hpp"
#include "core/base/result.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// One tile moved between HBM and an SM.
struct TileMove {
  std::int64_t tile = 0;  ///< its number among the tiles of `operand` in one walk
  std::int64_t bytes = 0;
  Operand operand{};
  enum class Way : std::uint8_t {
    load,
    store,
    load_in_l2,  ///< what is added to where it lies: nothing crosses into the SM
  } way = Way::load;
};

/// What a block does for one tile: its moves [first, last), and how long it takes.
struct Beat {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  float alone = 0;         ///< seconds, with the SM for itself
  float busiest = 0;       ///< seconds of the unit that is busy longest
  float shared_bytes = 0;  ///< in and out of shared memory
};

struct BlockProgram {
  std::vector<TileMove> moves;
  std::vector<Beat> beats;
};

class BlockSource {
 public:
  /// `clock` may be absent: beats then take a second each, and only their order means something.
  BlockSource(const Problem& problem, const Method& method, Habits habits, const Clock* clock);

  struct Kernel {
    std::string name;
    std::int64_t blocks = 0;  ///< of one walk
  };
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }
  /// Block `block` of kernel `kernel`, both counted from 0.
  std::shared_ptr<const BlockProgram> block(std::size_t kernel, std::int64_t block);

  /// All blocks of a walk are recorded at once, as where one block does all of a head.
  [[nodiscard]] bool whole() const { return parts_ == 1; }

  /// The tiles of an operand in one walk are numbered 0 … n−1.
  [[nodiscard]] std::int64_t tiles_of(Operand operand) const;

 private:
  using Programs = std::vector<std::shared_ptr<const BlockProgram>>;
  /// Records the blocks of query tile `part`, or of the whole walk, for each kernel.
  std::vector<Programs> record(std::int64_t part);

  Problem problem_;  ///< as the walks see it
  const Method& method_;
  Habits habits_;
  const Clock* clock_;
  std::int64_t parts_ = 1;  ///< the walk is recorded in so many parts
  std::vector<Kernel> kernels_;
  std::map<std::pair<std::size_t, std::int64_t>, Programs> kept_;
  std::int64_t beats_kept_ = 0;
};

}  // namespace flashsim
