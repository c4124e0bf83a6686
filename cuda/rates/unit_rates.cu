#include "cuda/rates/unit_rates.hpp"

#include <vector>

#include "cuda/pieces/matrix_fragment.cuh"
#include "cuda/rates/steady.hpp"

namespace flashsim {
namespace {

/// One block an SM, with at most eight warps for each of its four schedulers.
constexpr int kMostThreads = 1024;
constexpr double kKernelSeconds = 0.02;

/// How long a block took, in cycles of its SM and in time.
struct Span {
  long long cycles = 0;
  long long nanoseconds = 0;
};

__device__ long long nanoseconds_now() {
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Starts when all threads of the block are there, and ends when they are done.
class BlockClock {
 public:
  __device__ BlockClock() {
    __syncthreads();
    nanoseconds_ = nanoseconds_now();
    cycles_ = clock64();
  }
  __device__ void stop(Span* spans) const {
    __syncthreads();
    if (threadIdx.x == 0) spans[blockIdx.x] = {clock64() - cycles_, nanoseconds_now() - nanoseconds_};
  }

 private:
  long long nanoseconds_;
  long long cycles_;
};

/// A number from [0, 1) of each thread's own.
__device__ float own_number() {
  const unsigned x = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761U;
  return static_cast<float>((x ^ (x >> 15)) >> 8) * 0x1p-24F;
}

/// x ← x·x − c. For c between 1.5 and 1.9 its values never settle and stay below 2, so that the unit works on
/// other bits at every step.
template <class T>
struct MultiplyAdds {
  static constexpr int kThreads = kMostThreads;
  static constexpr int kPerRound = 8 * 32;
  static constexpr double kEach = 2;
  static __device__ float rounds(int times) {
    const T c = static_cast<T>(1.5F + 0.4F * own_number());
    T x[8];
    for (int k = 0; k < 8; ++k) x[k] = static_cast<T>(own_number()) - static_cast<T>(k) / 8;
    for (int time = 0; time < times; ++time) {
#pragma unroll
      for (int step = 0; step < 32; ++step) {
#pragma unroll
        for (T& each : x) each = fma(each, each, -c);
      }
    }
    T sum = 0;
    for (const T each : x) sum += each;
    return static_cast<float>(sum);
  }
};

/// x ← 2^−x, which stays between 0 and 2.
struct Exponentials {
  static constexpr int kThreads = kMostThreads;
  static constexpr int kPerRound = 8 * 8;
  static constexpr double kEach = 1;
  static __device__ float rounds(int times) {
    float x[8];
    for (int k = 0; k < 8; ++k) x[k] = own_number() + static_cast<float>(k) / 8;
    for (int time = 0; time < times; ++time) {
#pragma unroll
      for (int step = 0; step < 8; ++step) {
#pragma unroll
        for (float& each : x) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(each) : "f"(-each));
      }
    }
    float sum = 0;
    for (const float each : x) sum += each;
    return sum;
  }
};

/// 16 bytes a thread, neighbours side by side: no bank is asked twice.
struct SharedReads {
  static constexpr int kThreads = kMostThreads;
  static constexpr int kRows = 16;
  static constexpr int kPerRound = kRows;
  static constexpr double kEach = sizeof(float4);
  static __device__ float rounds(int times) {
    constexpr int kWarp = 32;
    constexpr int kSize = kThreads + (kRows + 1) * kWarp;
    __shared__ float4 memory[kSize];
    for (int i = static_cast<int>(threadIdx.x); i < kSize; i += kThreads) {
      const float value = own_number() + static_cast<float>(i);
      memory[i] = make_float4(value, 0.3F * value, 0.7F * value, -value);
    }
    __syncthreads();
    const auto own = static_cast<unsigned>(__cvta_generic_to_shared(memory + threadIdx.x));
    constexpr unsigned kRowBytes = kWarp * sizeof(float4);
    float sum = 0;
    unsigned shift = 0;
    for (int time = 0; time < times; ++time) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        float4 v;
        asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                     : "r"(own + shift + static_cast<unsigned>(row) * kRowBytes));
        sum += v.x + v.y + v.z + v.w;
      }
      // What was just read tells where to read next, or else the loads would be made once and kept.
      shift = sum > 0 ? kRowBytes : 0;
    }
    return sum;
  }
};

/// C += A B, of a 64 × 32 tile of C as a warp of attention holds it: every A meets every B, and no product
/// waits for the one before it. Elements of A and B have any sign, so that C stays small.
template <class T>
struct FragmentProducts {
  static constexpr int kThreads = 256;
  static constexpr int kAs = 4;
  static constexpr int kBs = 4;
  static constexpr int kSteps = 4;
  static constexpr int kPerRound = kSteps * kAs * kBs;
  static constexpr double kEach =
      2.0 * kFragmentRows * kFragmentKeys * kFragmentTerms / 32;  ///< a thread's part
  static __device__ float rounds(int times) {
    std::uint32_t a[kAs][4];
    std::uint32_t b[kBs][2];
    float c[kAs][kBs][4] = {};
    float number = own_number();
    const auto next_pair = [&] {
      const float first = number - 0.5F;
      number = number * 7.31F - floorf(number * 7.31F);
      const float second = number - 0.5F;
      number = number * 5.77F + 0.123F - floorf(number * 5.77F + 0.123F);
      return rounded_pair<T>(first, second);
    };
    for (auto& fragment : a) {
      for (std::uint32_t& pair : fragment) pair = next_pair();
    }
    for (auto& fragment : b) {
      for (std::uint32_t& pair : fragment) pair = next_pair();
    }
    for (int time = 0; time < times; ++time) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int i = 0; i < kAs; ++i) {
#pragma unroll
          for (int j = 0; j < kBs; ++j) {
            multiply_add<T>(c[i][j], a[(i + step) % kAs], b[j][0], b[j][1]);
          }
        }
      }
    }
    float sum = 0;
    for (const auto& row : c) {
      for (const auto& fragment : row) {
        for (const float each : fragment) sum += each;
      }
    }
    return sum;
  }
};

template <class Unit>
__global__ void __launch_bounds__(Unit::kThreads) work(int times, Span* spans, float* out) {
  const BlockClock clock;
  const float result = Unit::rounds(times);
  clock.stop(spans);
  if (result == 1.2345F) *out = result;  // Else nothing needs the result, and the compiler drops it all.
}

template <class Unit>
UnitRate measure(MemoryPool& pool, int sms, cudaStream_t stream) {
  constexpr int kFirstTimes = 256;
  const auto blocks = static_cast<std::size_t>(sms);
  const PoolArray<Span> spans(pool, blocks, stream);
  const PoolArray<float> out(pool, 1, stream);
  const auto launch = [&](int times) {
    work<Unit><<<sms, Unit::kThreads, 0, stream>>>(times, spans.data(), out.data());
  };
  EventTimer timer;
  (void)timer.seconds(stream, [&] { launch(kFirstTimes); });
  const int times =
      times_for(kKernelSeconds, kFirstTimes, timer.seconds(stream, [&] { launch(kFirstTimes); }));
  const double seconds = steady_seconds(stream, [&] { launch(times); });

  std::vector<Span> told(blocks);
  cuda_check(
      cudaMemcpyAsync(told.data(), spans.data(), blocks * sizeof(Span), cudaMemcpyDeviceToHost, stream),
      "cudaMemcpyAsync");
  cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  std::vector<double> cycles;
  std::vector<double> clocks;
  for (const Span& span : told) {
    cycles.push_back(static_cast<double>(span.cycles));
    clocks.push_back(1e9 * static_cast<double>(span.cycles) / static_cast<double>(span.nanoseconds));
  }
  const double by_block = Unit::kEach * Unit::kPerRound * Unit::kThreads * times;
  return {.per_second = by_block * sms / seconds,
          .per_sm_per_clock = by_block / median(std::move(cycles)),
          .clock_hz = median(std::move(clocks))};
}

}  // namespace

UnitRate measure_unit(Unit unit, MemoryPool& pool, int sms, cudaStream_t stream) {
  switch (unit) {
    case Unit::fp32: return measure<MultiplyAdds<float>>(pool, sms, stream);
    case Unit::fp64: return measure<MultiplyAdds<double>>(pool, sms, stream);
    case Unit::exponentials: return measure<Exponentials>(pool, sms, stream);
    case Unit::shared_memory: return measure<SharedReads>(pool, sms, stream);
    case Unit::fragments_fp16: return measure<FragmentProducts<__half>>(pool, sms, stream);
    case Unit::fragments_bf16: return measure<FragmentProducts<__nv_bfloat16>>(pool, sms, stream);
  }
  return {};
}

}  // namespace flashsim
