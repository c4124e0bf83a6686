// An L2 cache that the tiles of a kernel are played against. What it does was read off counters of real
// kernels on an H200 (docs/machine-model.md):
//
// - The cache has partitions, each next to its half of the SMs and of the memory. A tile lies half in each.
// An SM
//   that reads from the far half keeps a copy in its own partition, so that what all SMs read is held twice.
// - A piece that must go is the oldest of seven taken at random: between random replacement, which forgets
// too
//   much, and the least recently used, which forgets nothing until it forgets all.
// - Stores stay in the cache. At most a seventh of it waits to be written to memory; beyond that the oldest
// goes.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/units.hpp"

namespace flashsim {

class L2Cache {
 public:
  /// For tiles numbered 0 … tiles−1.
  L2Cache(Bytes capacity, std::int64_t partitions, std::int64_t tiles);

  /// An SM next to partition `side` loads or stores a whole tile. Gives the bytes that HBM was read for.
  std::int64_t load(std::int64_t tile, std::int64_t bytes, std::int64_t side);
  void store(std::int64_t tile, std::int64_t bytes, std::int64_t side);

  [[nodiscard]] std::int64_t hbm_read_bytes() const { return read_; }
  /// Written to memory so far; what still waits isn't.
  [[nodiscard]] std::int64_t hbm_write_bytes() const { return written_; }
  [[nodiscard]] std::int64_t waiting_bytes() const { return waiting_; }
  /// Each tile once that was loaded and not stored before: what no cache can spare.
  [[nodiscard]] std::int64_t compulsory_read_bytes() const { return compulsory_; }

  /// How many tiles a cache can be told of: some 40 bytes each.
  static constexpr std::int64_t kMostTiles = std::int64_t{1} << 25;

 private:
  /// A part of a tile, in one memory half.
  using Piece = std::int64_t;
  struct Partition {
    std::vector<std::int32_t> place;     // in `resident`, or −1, by piece
    std::vector<std::uint32_t> touched;  // when, by piece
    std::vector<std::int32_t> resident;
    std::uint32_t clock = 0;
    std::int64_t used = 0;
  };
  enum Flag : std::uint8_t { known = 1, waiting = 2 };

  [[nodiscard]] std::int64_t size_of(Piece piece) const;
  bool touch(Partition& partition, Piece piece);
  void keep(std::int64_t side, Piece piece);
  void drop_one(std::int64_t side);
  void write_back(Piece piece);
  std::uint64_t random();

  std::int64_t partitions_;
  std::int64_t capacity_;  // of one partition
  std::int64_t most_waiting_;
  std::vector<Partition> parts_;
  std::vector<std::int64_t> bytes_;  // by tile
  std::vector<std::uint8_t> flags_;  // by piece
  std::deque<Piece> queue_;          // pieces that wait to be written, oldest first
  std::uint64_t state_ = 88172645463325252U;
  std::int64_t read_ = 0;
  std::int64_t written_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t compulsory_ = 0;
};

}  // namespace flashsim
