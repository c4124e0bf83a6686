// A kernel's count of its own loads and stores: each thread adds up what it moves, and at the end a block
// reports once. Built without counting, it is nothing.
#pragma once

#include "cuda/ladder/rung.hpp"

namespace flashsim {

template <bool kCounts>
struct ByteCount;

template <>
struct ByteCount<false> {
  __device__ void read(std::size_t) {}
  __device__ void wrote(std::size_t) {}
  __device__ void report(OwnTraffic*) const {}
};

template <>
struct ByteCount<true> {
  unsigned long long read_bytes = 0;
  unsigned long long written_bytes = 0;

  __device__ void read(std::size_t bytes) { read_bytes += bytes; }
  __device__ void wrote(std::size_t bytes) { written_bytes += bytes; }

  /// Every thread of the block calls it, once.
  __device__ void report(OwnTraffic* total) const {
    __shared__ OwnTraffic of_block;
    if (threadIdx.x == 0) of_block = OwnTraffic{};
    __syncthreads();  // the sums are 0 before anyone adds
    atomicAdd(&of_block.read, read_bytes);
    atomicAdd(&of_block.written, written_bytes);
    __syncthreads();  // all have added
    if (threadIdx.x != 0) return;
    atomicAdd(&total->read, of_block.read);
    atomicAdd(&total->written, of_block.written);
  }
};

}  // namespace flashsim
