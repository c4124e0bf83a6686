// idea: few queries over many keys: the keys are split over blocks, and what the parts find is combined.
// what changed: a group's query heads in one tile, so K and V are read once for all of them; key warps.
// HBM traffic: Q, K, V once for each query tile; S > 1: O_part and L_part in float32 out and in again.
// on-chip memory: Q_i and a ring of pieces of K and V in shared memory; S, P and O in registers.
// parallelism: a block a part of a query tile; its warps share rows, keys or both, and merge at the end.
// limits: mma.sync; d ≤ 256; sm_80 and later, as far as a block gets 100 … 200 KiB of shared memory.
#pragma once

#include <cstdint>

#include "cuda/ladder/05_flash_split_kv_merge.cuh"
#include "cuda/ladder/rung.hpp"
#include "cuda/pieces/fragment_mask.cuh"
#include "cuda/pieces/fragment_products.cuh"
#include "cuda/pieces/fragment_softmax.cuh"
#include "cuda/pieces/masked_values.cuh"
#include "cuda/pieces/swizzled_tile.cuh"
#include "cuda/pieces/thread_group.cuh"

namespace flashsim::split_kv {

/// A block: kGroupsOf groups of kRowWarps warps. A warp has kFragmentsOf fragments of 16 rows, and every
/// group all rows of the tile; keys go to the groups in turn, kStepKeysOf at a time, and each group keeps
/// kSlotsOf such pieces of K and V on their way. Rows are padded with zeros to kDepthOf columns. The compiler
/// is to make room for kBlocksOf blocks on an SM.
template <int kDepthOf, int kFragmentsOf, int kRowWarps, int kGroupsOf, int kStepKeysOf, int kSlotsOf,
          int kBlocksOf>
struct Shape {
  static constexpr int kDepth = kDepthOf, kGroups = kGroupsOf, kStepKeys = kStepKeysOf;
  static constexpr int kSlots = kSlotsOf, kBlocks = kBlocksOf, kFragments = kFragmentsOf;
  static constexpr int kWarpRows = kFragments * kFragmentRows;
  static constexpr int kRows = kWarpRows * kRowWarps;
  static constexpr int kGroupThreads = 32 * kRowWarps;
  static constexpr int kThreads = kGroups * kGroupThreads;
  static constexpr int kSlotElements = kStepKeys * kDepth;
  using States = GroupStates<kDepth, kRows, kGroups>;
  static constexpr int kLoopBytes = 2 * (kRows * kDepth + kGroups * kSlots * kSlotElements);
  static constexpr int kSharedBytes = kLoopBytes > States::kBytes ? kLoopBytes : States::kBytes;
  static_assert(kSlots >= 3, "one is read, one is awaited, and more are on their way");
};

struct Arguments {
  const void* q;
  const void* k;
  const void* v;
  void* o;                 ///< where there is one part: in the storage type
  float* o_part;           ///< else [B, Hkv, S, rows, d]
  float* lse;              ///< where there is one part
  float* lse_part;         ///< else [B, Hkv, S, rows]
  std::int64_t seq;        ///< N, and G·N are the packed rows
  Sight sight;             ///< of a query, not of a packed row
  std::int64_t part_keys;  ///< of a part, whole key tiles
  unsigned group;          ///< G
  unsigned splits, query_tiles;
  int key_rows;  ///< of a key tile
  int head_dim;
  bool in_pieces;  ///< rows are whole pieces of 16 bytes
  ScoreScale scale;
};

/// A group's threads start copying the first `rows` of kRows rows that lie one after the other from `from` on
/// into a tile; the others become 0.
template <int kRows, int kDepth, int kThreads, class T>
__device__ inline void copy_keys(T* tile, const T* from, int rows, int columns, bool in_pieces) {
  using Tile = SwizzledTile<kDepth>;
  constexpr int kStep = kThreads / Tile::kPieces;
  static_assert(kThreads % Tile::kPieces == 0 && kRows % kStep == 0, "all threads copy as many pieces");
  char* const bytes = reinterpret_cast<char*>(tile);
  const int thread = ThreadGroup<kThreads>::thread();
  if (in_pieces) {
    const int row = thread / Tile::kPieces;
    const int piece = thread % Tile::kPieces;
    const int rows_there = piece * kPieceElements < columns ? rows : 0;
    const T* const first = from + (row < rows_there ? row * columns + piece * kPieceElements : 0);
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      const bool there = row + i * kStep < rows_there;
      copy_async<16>(bytes + Tile::offset(row + i * kStep, piece), first + (there ? i * kStep * columns : 0),
                     there);
    }
  } else {
#pragma unroll 1
    for (int n = thread; n < kRows * kDepth; n += kThreads) {
      const int row = n / kDepth;
      const int column = n % kDepth;
      char* const to = bytes + Tile::offset(row, column / kPieceElements) + 2 * (column % kPieceElements);
      *reinterpret_cast<T*>(to) =
          row < rows && column < columns ? from[row * columns + column] : static_cast<T>(0.0F);
    }
  }
}

/// What isn't finite in the elements of a tile of V that this thread copied (copy_keys) becomes 0. It calls
/// it when they have come, and before others may read them. Whether there was anything.
template <int kRows, int kDepth, int kThreads, class T>
__device__ inline bool take_out(T* tile, bool in_pieces) {
  char* const bytes = reinterpret_cast<char*>(tile);
  const int together = in_pieces ? kPieceElements : 1;
  bool found = false;
#pragma unroll 1
  for (int n = ThreadGroup<kThreads>::thread() * together; n < kRows * kDepth; n += kThreads * together) {
    const int column = n % kDepth;
    T* const piece =
        reinterpret_cast<T*>(bytes + SwizzledTile<kDepth>::offset(n / kDepth, column / kPieceElements));
#pragma unroll 1
    for (int x = 0; x < together; ++x) {
      T& each = piece[column % kPieceElements + x];
      if (is_finite(each)) continue;
      each = static_cast<T>(0.0F);
      found = true;
    }
  }
  return found;
}

/// Masks the scores of the step of keys from `first_key` on; the accumulators' first row is the tile's row
/// `row`.
template <int kFragments, int kGroups>
__device__ inline void mask_keys(Accumulators<kFragments, kGroups>& s, const Sight& sight,
                                 const PackedRows& packed, int row, std::int64_t first_key) {
  constexpr std::int64_t kStepKeys = std::int64_t{kGroups} * kFragmentKeys;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  over_rows<kFragments>([&](int f, int half) {
    const std::int64_t end =
        sight.of(packed.query(row + f * kFragmentRows + half * 8 + lane / 4)) - first_key;
    const int seen = static_cast<int>(max(min(end, kStepKeys), std::int64_t{0})) - lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kGroups; ++n) {
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        if (n * kFragmentKeys + x >= seen) s[f][n][2 * half + x] = -INFINITY;
      }
    }
  });
}

template <class T, class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) attend(const __grid_constant__ Arguments args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ float lse_of_row[S::kRows];
  constexpr int kDepth = S::kDepth, kStepKeys = S::kStepKeys, kSlots = S::kSlots;
  constexpr int kBlockKeys = S::kGroups * kStepKeys;
  const auto group = ThreadGroup<S::kGroupThreads>::of_this_thread();
  T* const q = reinterpret_cast<T*>(shared);
  T* const ring = q + S::kRows * kDepth + group.number * kSlots * S::kSlotElements;

  const unsigned part = blockIdx.x % args.splits;
  const unsigned tile = blockIdx.x / args.splits % args.query_tiles;
  const std::int64_t walk = blockIdx.x / args.splits / args.query_tiles;  // batch entry and key/value head
  const int columns = args.head_dim;
  const std::int64_t first_row = std::int64_t{tile} * S::kRows;
  const std::int64_t rows_left = args.seq * args.group - first_row;
  const int rows_there = static_cast<int>(rows_left < S::kRows ? rows_left : S::kRows);
  const PackedRows packed(first_row, args.group);

  // The keys of this block: those of its part in key tiles that a row of the tile sees.
  const std::int64_t key_rows = args.key_rows;
  const std::int64_t visible = args.sight.of(packed.query(rows_there - 1));
  const std::int64_t visited = min((visible + key_rows - 1) / key_rows * key_rows, args.sight.keys);
  const std::int64_t begin = part * args.part_keys;
  const std::int64_t end = min(begin + args.part_keys, visited);
  const std::int64_t seen_by_all = args.sight.of(packed.query(0));

  // This group's: step n has the keys from `first_key` + n·kBlockKeys on.
  const std::int64_t first_key = begin + group.number * kStepKeys;
  const int steps = first_key < end ? static_cast<int>((end - first_key + kBlockKeys - 1) / kBlockKeys) : 0;
  const std::int64_t head_keys = (walk * args.sight.keys + first_key) * columns;
  const std::int64_t stride = std::int64_t{kBlockKeys} * columns;

  // Pieces of K and V in turn go through the ring, one group of copies each, empty ones behind the last.
  const T* next_k = static_cast<const T*>(args.k) + head_keys;
  const T* next_v = static_cast<const T*>(args.v) + head_keys;
  std::int64_t keys_left = end - first_key;
  const auto copy_next = [&](const T*& from, int slot) {
    if (keys_left > 0) {
      const int rows = static_cast<int>(keys_left < kStepKeys ? keys_left : kStepKeys);
      copy_keys<kStepKeys, kDepth, S::kGroupThreads>(ring + slot * S::kSlotElements, from, rows, columns,
                                                     args.in_pieces);
    }
    from += stride;
    end_group();
  };
  const auto copy_next_k = [&](int slot) { copy_next(next_k, slot); };
  const auto copy_next_v = [&](int slot) {
    copy_next(next_v, slot);
    keys_left -= kBlockKeys;
  };

  if (begin < end || args.splits == 1) {
    copy_rows<S::kRows, kDepth, S::kThreads>(
        q,
        [&](int row) {
          const bool there = row < rows_there;
          return MemoryRow<T>{
              static_cast<const T*>(args.q) + (there ? packed.place(row, walk, args.seq) * columns : 0),
              there};
        },
        columns, args.in_pieces);
  }
  end_group();
#pragma unroll
  for (int slot = 0; slot < kSlots - 1; ++slot) {
    if (slot % 2 == 0) {
      copy_next_k(slot);
    } else {
      copy_next_v(slot);
    }
  }

  const int warp_row = group.thread() / 32 * S::kWarpRows;
  FragmentRows<S::kFragments> rows;
  float o[S::kFragments][kDepth / kFragmentKeys][4] = {};
  bool infinities = false;  // in values of steps with masked keys

  wait_for_groups<kSlots - 1>();
  __syncthreads();  // Q_i is there for all.
  const std::uint32_t q_at = fragment_address<kDepth>(q, warp_row);
  int slot = 0;           // that is read
  int free = kSlots - 1;  // that was read before
  const auto advance = [&] {
    free = slot;
    slot = slot + 1 == kSlots ? 0 : slot + 1;
  };
  // With an odd number of slots the one that becomes free is a K's as often as a V's.
  constexpr bool kValuesFirst = kSlots % 2 == 0;
  for (int n = 0; n < steps; ++n) {
    const std::int64_t key = first_key + std::int64_t{n} * kBlockKeys;
    wait_for_groups<kSlots - 2>();
    group.barrier();  // K's piece is there for all, and nobody reads V's before it any more.
    if constexpr (kValuesFirst) {
      copy_next_v(free);
    } else {
      copy_next_k(free);
    }
    float s[S::kFragments][kStepKeys / kFragmentKeys][4] = {};
    add_scores<T, kDepth>(s, q_at, shared_address(ring + slot * S::kSlotElements));
    args.scale.give_sign(s);
    const bool whole = key + kStepKeys <= seen_by_all;
    if (!whole) mask_keys(s, args.sight, packed, warp_row, key);
    take_online<RightSoftmax>(s, o, rows, args.scale.times_log2e);
    advance();

    wait_for_groups<kSlots - 2>();
    T* const v = ring + slot * S::kSlotElements;
    if (!whole && args.sight.causal) {
      infinities = take_out<kStepKeys, kDepth, S::kGroupThreads>(v, args.in_pieces) || infinities;
    }
    group.barrier();  // V's piece is there for all, and nobody reads K's any more.
    if constexpr (kValuesFirst) {
      copy_next_k(free);
    } else {
      copy_next_v(free);
    }
    add_output<T, kDepth>(o, s, shared_address(v));
    advance();
  }
  // Every group passes the same number of barriers: compute-sanitizer --tool racecheck takes it for the time.
  if (steps < (end - begin + kBlockKeys - 1) / kBlockKeys) {
    group.barrier();
    group.barrier();
  }
  wait_for_groups<0>();
  infinities = __syncthreads_or(static_cast<int>(infinities)) != 0;  // Nobody reads the ring any more.

  // The groups' states lie where Q_i and the rings lay.
  const typename S::States states(shared);
  states.put(group.number, warp_row, o, rows);
  __syncthreads();  // All states are there.
  const std::int64_t all_rows = args.seq * args.group;
  const std::int64_t part_row = (walk * args.splits + part) * all_rows + first_row;
  // Keys before this one were whole steps, or another part's.
  const std::int64_t first_taken =
      seen_by_all > begin ? begin + (seen_by_all - begin) / kStepKeys * kStepKeys : begin;
  const T* const head_v = static_cast<const T*>(args.v) + walk * args.sight.keys * columns;
#pragma unroll 1
  for (int n = static_cast<int>(threadIdx.x); n < rows_there * (kDepth / 4); n += S::kThreads) {
    const int row = n / (kDepth / 4);
    const int column = n % (kDepth / 4) * 4;
    if (column >= columns) continue;
    Neighbours<float, 4> sum;
    const float lse = states.merge(row, column, sum);
    if (infinities) {
      const std::int64_t last = min(args.sight.of(packed.query(row)), end);
      add_infinities(sum, head_v, columns, column, first_taken, last);
    }
    if (column == 0) lse_of_row[row] = lse;
    if (args.splits == 1) {
      store_columns(static_cast<T*>(args.o) + packed.place(row, walk, args.seq) * columns, column, columns,
                    sum, args.in_pieces);
    } else {
      store_columns(args.o_part + (part_row + row) * columns, column, columns, sum, args.in_pieces);
    }
  }
  __syncthreads();  // L of all rows is there.
  // Neighbouring rows go out together: a sector crosses once for each store that touches it.
  const auto row = static_cast<int>(threadIdx.x);
  if (row >= rows_there) return;
  if (args.splits == 1) {
    args.lse[packed.place(row, walk, args.seq)] = lse_of_row[row];
  } else {
    args.lse_part[part_row + row] = lse_of_row[row];
  }
}

}  // namespace flashsim::split_kv
