// cuBLAS, opened while the program runs: one handle a GPU, made at its first use, and the one product that
// is wanted of it. Its header gives the types alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace flashsim {

class CublasError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// There is no cuBLAS here, or one that is too old. `remedy` is a sentence.
class CublasMissing : public CublasError {
 public:
  CublasMissing(const std::string& why, std::string remedy) : CublasError(why), remedy_(std::move(remedy)) {}
  [[nodiscard]] const std::string& remedy() const { return remedy_; }

 private:
  std::string remedy_;
};

/// A matrix as cuBLAS has it: column by column, `leading` elements apart. A row-major matrix is the
/// transpose of a column-major one with the same memory.
template <class Memory>
struct CublasMatrix {
  Memory* data = nullptr;
  std::int64_t leading = 0;
  std::int64_t stride = 0;  ///< elements from one of the batch to the next
};

/// C = alpha · op(A) op(B) for each of a batch. op(A): [m, k], op(B): [k, n], C: [m, n], column-major.
struct CublasProduct {
  std::int64_t m = 0, n = 0, k = 0;
  CublasMatrix<const void> a, b;
  CublasMatrix<void> c;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  std::int64_t batch = 1;          ///< any number: the library gets them in parts that it takes
  cudaDataType type = CUDA_R_16F;  ///< of A and B
  cudaDataType type_c = CUDA_R_16F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;  ///< one whose alpha is a float or a double
};

class Cublas {
 public:
  /// Of the current device. Throws CublasMissing where the library can't be opened, CublasError where it
  /// can't start.
  static Cublas& of_current_device();

  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// The bytes to work in that NVIDIA recommends for the current device. Throws CudaError.
  static std::size_t workspace_bytes();

  /// Everything after this is done on `stream`, with that workspace, which must outlive it there. Throws
  /// CublasError.
  void use(cudaStream_t stream, void* workspace, std::size_t bytes);

  /// Launches the product and returns before it ends. Sums are kept in the compute type to their end, and
  /// CUBLAS_COMPUTE_32F is never TF32. Throws CublasError.
  void multiply(const CublasProduct& product);

  /// "13.1.0"
  [[nodiscard]] std::string version() const;

 private:
  struct Functions;
  explicit Cublas(const Functions& functions);
  void check(cublasStatus_t status, const char* call) const;

  const Functions& functions_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace flashsim
