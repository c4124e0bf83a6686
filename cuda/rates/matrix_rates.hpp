// Matrix products of the size at which they run fastest, through cuBLAS: what the tensor units reach, and
// what its float32 product makes of the FMA units.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <cuda_runtime.h>

#include "cuda/driver_facts.hpp"
#include "cuda/memory_pool.hpp"

namespace flashsim {

enum class MatrixType { fp16, bf16, tf32, fp32 };

inline constexpr std::array kMatrixTypes{MatrixType::fp16, MatrixType::bf16, MatrixType::tf32,
                                         MatrixType::fp32};

/// FLOPs a second, by MatrixType; absent where the library or the chip has no such product.
struct MatrixRates {
  std::int64_t n = 0;  ///< of N × N
  std::array<std::optional<double>, kMatrixTypes.size()> flops_per_second;
  std::optional<double> clock_hz;  ///< of the SMs during the fp16 products, where the driver tells it
  std::string missing;             ///< why there are none, in one sentence; empty where there are

  [[nodiscard]] std::optional<double> of(MatrixType type) const {
    return flops_per_second[static_cast<std::size_t>(type)];
  }
};

/// C = A·B of 8192 × 8192 random numbers, or of as many as fit, float32 sums. Throws CudaError.
MatrixRates measure_matrix_products(MemoryPool& pool, const DriverFacts& driver, cudaStream_t stream);

}  // namespace flashsim
