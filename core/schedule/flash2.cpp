// FlashAttention-2 forward (arXiv 2307.08691, Algorithm 1): query tiles outside, key/value tiles
// inside. O stays unnormalised on the chip until its row is done; O and L are written once.
#include "core/schedule/query_tiles_outside.hpp"

namespace flashsim {

void walk_flash2(const Problem& problem, const Method& method, Range part, Listener& listener) {
  walk_query_tiles_outside(problem, method.tiling, part, listener,
                           [](std::int64_t, std::int64_t j) { return j; });
}

}  // namespace flashsim
