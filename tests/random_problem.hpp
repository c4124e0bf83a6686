// Random small problems and tilings, the same on every machine: ragged, N ≠ Nkv both ways, both
// alignments, grouped heads, every type, tiles from one row to more rows than there are.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

#include "core/problem/problem.hpp"
#include "core/problem/tiling.hpp"

namespace flashsim::test {

struct Shape {
  Problem problem;
  Tiling tiling;
};

/// As a failed test names it.
inline std::string text_of(const Shape& shape) {
  const Problem& p = shape.problem;
  return fmt::format("{} {} {} {}, tiles {}", shape_text(p), name_of(p.storage),
                     p.causal ? "causal" : "not causal", p.causal ? name_of(p.alignment) : "",
                     tiling_text(shape.tiling));
}

class RandomShapes {
 public:
  explicit RandomShapes(std::uint64_t seed) : engine_(seed) {}

  /// Sequences of up to `longest` rows.
  Shape next(std::int64_t longest) {
    Problem p;
    p.batch = from_to(1, 3);
    p.kv_heads = from_to(1, 3);
    p.heads = p.kv_heads * from_to(1, 4);
    p.seq = one_in(8) ? 1 : from_to(1, longest);
    p.kv_seq = one_in(4) ? p.seq : one_in(8) ? 1 : from_to(1, longest);
    p.head_dim = one_in(4) ? 1 : from_to(1, 20);
    p.causal = !one_in(4);
    p.alignment = one_in(2) ? CausalAlignment::bottom_right : CausalAlignment::top_left;
    p.storage = kNumberTypes[static_cast<std::size_t>(from_to(0, std::int64_t{kNumberTypes.size()} - 1))];
    return {.problem = p, .tiling = {.query_rows = tile(longest), .key_rows = tile(longest)}};
  }

 private:
  // The standard's distributions differ between libraries; a remainder doesn't.
  std::int64_t from_to(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool one_in(std::int64_t n) { return from_to(1, n) == 1; }
  std::int64_t tile(std::int64_t longest) { return one_in(8) ? longest + 5 : from_to(1, 1 + longest / 2); }

  std::mt19937_64 engine_;
};

}  // namespace flashsim::test
