// Random patterns of blocks on the tiles of a problem, the same on every machine: windows and strides from
// one up, and blocks drawn one by one, some of them none and some all.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "core/problem/block_pattern.hpp"

namespace flashsim::test {

class RandomPatterns {
 public:
  explicit RandomPatterns(std::uint64_t seed) : engine_(seed) {}

  std::int64_t from_to(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }

  std::shared_ptr<const BlockPattern> next(const Problem& problem, Tiling tiling) {
    PatternRequest request{.kind = static_cast<PatternKind>(from_to(0, 2))};
    if (request.kind == PatternKind::window) request.size = from_to(1, problem.kv_seq + 3);
    if (request.kind == PatternKind::strided) request.size = from_to(1, 6);
    if (request.kind == PatternKind::rows) {
      const std::int64_t density = from_to(0, 4);
      const std::int64_t query_tiles = (problem.seq - 1) / tiling.query_rows + 1;
      const std::int64_t key_tiles = (problem.kv_seq - 1) / tiling.key_rows + 1;
      for (std::int64_t i = 0; i < query_tiles; ++i) {
        std::string row;
        for (std::int64_t j = 0; j < key_tiles; ++j) row += from_to(1, 4) <= density ? '1' : '0';
        request.rows.push_back(row);
      }
    }
    return BlockPattern::on_tiles(request, problem, tiling).value();
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace flashsim::test
