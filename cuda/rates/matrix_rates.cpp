#include "cuda/rates/matrix_rates.hpp"

#include "cuda/check.hpp"
#include "cuda/library/cublas.hpp"
#include "cuda/rates/random_fill.hpp"
#include "cuda/rates/steady.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kLargest = 8192;
constexpr std::int64_t kSmallest = 1024;
constexpr double kWatchedSeconds = 0.05;

/// How they lie in memory, and in which type they are multiplied and added up.
struct Operands {
  NumberType storage;
  cudaDataType_t type;
  cublasComputeType_t compute;
};

Operands operands_of(MatrixType type) {
  switch (type) {
    case MatrixType::fp16: return {NumberType::fp16, CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case MatrixType::bf16: return {NumberType::bf16, CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case MatrixType::tf32: return {NumberType::fp32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case MatrixType::fp32: break;
  }
  return {NumberType::fp32, CUDA_R_32F, CUBLAS_COMPUTE_32F};
}

struct Rate {
  double flops_per_second = 0;
  std::optional<double> clock_hz;
};

/// Absent where cuBLAS or the chip doesn't take the product.
std::optional<Rate> rate_of(Cublas& cublas, MatrixType type, std::int64_t n, MemoryPool& pool,
                            const DriverFacts& driver, cudaStream_t stream) {
  const Operands operands = operands_of(type);
  const auto count = static_cast<std::size_t>(n * n);
  const std::size_t bytes = count * static_cast<std::size_t>(size_of(operands.storage));
  const PoolArray<char> a(pool, bytes, stream);
  const PoolArray<char> b(pool, bytes, stream);
  const PoolArray<char> c(pool, bytes, stream);
  fill_random(a.data(), operands.storage, count, 3, stream);
  fill_random(b.data(), operands.storage, count, 4, stream);
  const CublasProduct product{.m = n,
                              .n = n,
                              .k = n,
                              .a = {.data = a.data(), .leading = n},
                              .b = {.data = b.data(), .leading = n},
                              .c = {.data = c.data(), .leading = n},
                              .type = operands.type,
                              .type_c = operands.type,
                              .compute = operands.compute};
  try {
    const auto multiply = [&] { cublas.multiply(product); };
    const double seconds = steady_seconds(stream, multiply);
    // The driver is asked while the products still run: the clock changes as soon as they are done.
    for (double queued = 0; queued < kWatchedSeconds; queued += seconds) multiply();
    const std::optional<double> clock = driver.sm_clock_hz();
    cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const auto size = static_cast<double>(n);
    return Rate{.flops_per_second = 2 * size * size * size / seconds, .clock_hz = clock};
  } catch (const CublasError&) {
    return std::nullopt;
  }
}

/// Three matrices of float32 in a quarter of what is free.
std::int64_t fitting_n() {
  std::size_t free = 0;
  std::size_t all = 0;
  cuda_check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  std::int64_t n = kLargest;
  while (n > kSmallest && static_cast<std::size_t>(n * n) * 3 * sizeof(float) > free / 4) n /= 2;
  return n;
}

}  // namespace

MatrixRates measure_matrix_products(MemoryPool& pool, const DriverFacts& driver, cudaStream_t stream) {
  MatrixRates rates;
  try {
    Cublas& cublas = Cublas::of_current_device();
    const std::size_t workspace_bytes = Cublas::workspace_bytes();
    const PoolArray<char> workspace(pool, workspace_bytes, stream);
    cublas.use(stream, workspace.data(), workspace_bytes);
    rates.n = fitting_n();
    for (const MatrixType type : kMatrixTypes) {
      const auto rate = rate_of(cublas, type, rates.n, pool, driver, stream);
      if (!rate) continue;
      rates.flops_per_second[static_cast<std::size_t>(type)] = rate->flops_per_second;
      if (type == MatrixType::fp16) rates.clock_hz = rate->clock_hz;
    }
  } catch (const CublasError& error) {
    rates.missing = error.what();
  }
  return rates;
}

}  // namespace flashsim
