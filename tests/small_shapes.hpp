// Every small shape: lengths and tiles from one up, with and without a mask, both alignments.
#pragma once

#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim::test {

/// Calls `look(problem, tiling)` for every N and Nkv up to `longest` and every tile up to one row more.
template <class Look>
void for_every_small_shape(std::int64_t longest, Look look) {
  struct Mask {
    bool causal;
    CausalAlignment alignment;
  };
  for (const auto& [causal, alignment] :
       {Mask{false, CausalAlignment::bottom_right}, Mask{true, CausalAlignment::bottom_right},
        Mask{true, CausalAlignment::top_left}}) {
    Problem p{.batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 2, .causal = causal, .alignment = alignment};
    Tiling t;
    for (p.seq = 1; p.seq <= longest; ++p.seq) {
      for (p.kv_seq = 1; p.kv_seq <= longest; ++p.kv_seq) {
        for (t.query_rows = 1; t.query_rows <= longest + 1; ++t.query_rows) {
          for (t.key_rows = 1; t.key_rows <= longest + 1; ++t.key_rows) look(p, t);
        }
      }
    }
  }
}

}  // namespace flashsim::test
