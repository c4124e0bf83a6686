#include "cuda/rates/matrix_rates.hpp"

#include <cublas_v2.h>

#include "cuda/check.hpp"
#include "cuda/library/dynamic_library.hpp"
#include "cuda/rates/random_fill.hpp"
#include "cuda/rates/steady.hpp"

namespace flashsim {
namespace {

constexpr std::array kLibraries{"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
constexpr std::int64_t kLargest = 8192;
constexpr std::int64_t kSmallest = 1024;

/// What a product is made of: operands as they lie in memory, and how they are multiplied.
struct Product {
  NumberType storage;
  cudaDataType_t type;
  cublasComputeType_t compute;
};

Product product_of(MatrixType type) {
  switch (type) {
    case MatrixType::fp16: return {NumberType::fp16, CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case MatrixType::bf16: return {NumberType::bf16, CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case MatrixType::tf32: return {NumberType::fp32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case MatrixType::fp32: break;
  }
  return {NumberType::fp32, CUDA_R_32F, CUBLAS_COMPUTE_32F};
}

/// The few functions that are needed of cuBLAS, and a handle.
class Library {
 public:
  Library(DynamicLibrary library, cudaStream_t stream)
      : library_(std::move(library)),
        destroy_(library_.function<decltype(cublasDestroy_v2)>("cublasDestroy_v2")),
        multiply_(library_.function<decltype(cublasGemmEx)>("cublasGemmEx")) {
    const auto create = library_.function<decltype(cublasCreate_v2)>("cublasCreate_v2");
    const auto set_stream = library_.function<decltype(cublasSetStream_v2)>("cublasSetStream_v2");
    if (create == nullptr || set_stream == nullptr || destroy_ == nullptr || multiply_ == nullptr) return;
    if (create(&handle_) != CUBLAS_STATUS_SUCCESS) {
      handle_ = nullptr;
      return;
    }
    (void)set_stream(handle_, stream);
  }
  ~Library() {
    if (handle_ != nullptr) (void)destroy_(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] bool opened() const { return handle_ != nullptr; }

  /// Whether the product was taken.
  [[nodiscard]] bool multiply(const Product& product, int n, const void* a, const void* b, void* c) const {
    const float one = 1;
    const float zero = 0;
    return multiply_(handle_, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, product.type, n, b, product.type, n,
                     &zero, c, product.type, n, product.compute,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
  }

 private:
  DynamicLibrary library_;
  decltype(&cublasDestroy_v2) destroy_ = nullptr;
  decltype(&cublasGemmEx) multiply_ = nullptr;
  cublasHandle_t handle_ = nullptr;
};

/// FLOPs a second; absent where cuBLAS doesn't take the product.
std::optional<double> rate_of(const Library& library, MatrixType type, std::int64_t n, MemoryPool& pool,
                              cudaStream_t stream) {
  const Product product = product_of(type);
  const auto count = static_cast<std::size_t>(n * n);
  const std::size_t bytes = count * static_cast<std::size_t>(size_of(product.storage));
  const PoolArray<char> a(pool, bytes, stream);
  const PoolArray<char> b(pool, bytes, stream);
  const PoolArray<char> c(pool, bytes, stream);
  fill_random(a.data(), product.storage, count, 3, stream);
  fill_random(b.data(), product.storage, count, 4, stream);
  bool taken = true;
  const auto multiply = [&] {
    taken = taken && library.multiply(product, static_cast<int>(n), a.data(), b.data(), c.data());
  };
  multiply();
  if (!taken) return std::nullopt;
  const double seconds = steady_seconds(stream, multiply);
  if (!taken) return std::nullopt;
  return 2.0 * static_cast<double>(n * n * n) / seconds;
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

MatrixRates measure_matrix_products(MemoryPool& pool, cudaStream_t stream) {
  MatrixRates rates;
  auto opened = DynamicLibrary::open(kLibraries, rates.missing);
  if (!opened) return rates;
  const Library library(std::move(*opened), stream);
  if (!library.opened()) {
    rates.missing = "cuBLAS is there and doesn't start";
    return rates;
  }
  rates.n = fitting_n();
  for (const MatrixType type : kMatrixTypes) {
    rates.flops_per_second[static_cast<std::size_t>(type)] = rate_of(library, type, rates.n, pool, stream);
  }
  return rates;
}

}  // namespace flashsim
