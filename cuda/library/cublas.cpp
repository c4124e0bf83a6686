#include "cuda/library/cublas.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/check.hpp"
#include "cuda/library/dynamic_library.hpp"

namespace flashsim {
namespace {

/// What the library takes as one batch.
constexpr std::int64_t kLargestBatch = 65535;

const char* const kRemedy =
    "install cuBLAS 12 or later (it comes with the CUDA toolkit), or set FLASHSIM_CUBLAS to the path of "
    "libcublas.so";

bool counts_in_double(cublasComputeType_t compute) {
  return compute == CUBLAS_COMPUTE_64F || compute == CUBLAS_COMPUTE_64F_PEDANTIC;
}

/// Where matrix `index` of the batch begins.
const char* place(const CublasMatrix<const void>& matrix, std::int64_t index, std::size_t element) {
  return static_cast<const char*>(matrix.data) + index * matrix.stride * static_cast<std::int64_t>(element);
}
char* place(const CublasMatrix<void>& matrix, std::int64_t index, std::size_t element) {
  return static_cast<char*>(matrix.data) + index * matrix.stride * static_cast<std::int64_t>(element);
}

std::size_t size_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2: return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F: return 4;
    case CUDA_R_64F: return 8;
    default: throw CublasError("a product of a data type whose size isn't known here");
  }
}

}  // namespace

/// The library stays open until the process ends: to close it while a driver shuts down is asking for
/// trouble.
struct Cublas::Functions {
  decltype(cublasCreate_v2)* create;
  decltype(cublasSetStream_v2)* set_stream;
  decltype(cublasSetWorkspace_v2)* set_workspace;
  decltype(cublasSetMathMode)* set_math_mode;
  decltype(cublasGemmStridedBatchedEx_64)* multiply;
  decltype(cublasGetProperty)* property;
  decltype(cublasGetStatusString)* words;

  static const Functions& opened() {
    static const Functions functions = open();
    return functions;
  }

 private:
  static Functions open() {
    const std::array<const char*, 7> names{std::getenv("FLASHSIM_CUBLAS"),
                                           "libcublas.so.13",
                                           "libcublas.so.12",
                                           "libcublas.so",
                                           "/usr/local/cuda/lib64/libcublas.so.13",
                                           "/usr/local/cuda/lib64/libcublas.so.12",
                                           "/usr/local/cuda/lib64/libcublas.so"};
    std::string why;
    auto opened = DynamicLibrary::open(names, why);
    if (!opened) throw CublasMissing("cuBLAS can't be opened: " + why, kRemedy);
    const DynamicLibrary& library = *new DynamicLibrary(std::move(*opened));
    const auto find = [&]<class F>(F*& function, const char* name) {
      function = library.function<F>(name);
      if (function == nullptr) {
        throw CublasMissing(std::string("this cuBLAS has no ") + name + ", and so is too old", kRemedy);
      }
    };
    Functions functions{};
    find(functions.create, "cublasCreate_v2");
    find(functions.set_stream, "cublasSetStream_v2");
    find(functions.set_workspace, "cublasSetWorkspace_v2");
    find(functions.set_math_mode, "cublasSetMathMode");
    find(functions.multiply, "cublasGemmStridedBatchedEx_64");
    find(functions.property, "cublasGetProperty");
    find(functions.words, "cublasGetStatusString");
    return functions;
  }
};

Cublas& Cublas::of_current_device() {
  static std::mutex mutex;
  // Never destroyed, for the reason that the library is never closed.
  static auto& handles = *new std::map<int, std::unique_ptr<Cublas>>;
  int device = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  auto& handle = handles[device];
  if (!handle) handle.reset(new Cublas(Functions::opened()));
  return *handle;
}

Cublas::Cublas(const Functions& functions) : functions_(functions) {
  check(functions_.create(&handle_), "cublasCreate");
  check(functions_.set_math_mode(handle_,
                                 static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "cublasSetMathMode");
}

std::size_t Cublas::workspace_bytes() {
  int device = 0;
  int major = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return major >= 9 ? 32 * kMiB : 4 * kMiB;
}

void Cublas::use(cudaStream_t stream, void* workspace, std::size_t bytes) {
  // In this order: a new stream brings back the library's own workspace.
  check(functions_.set_stream(handle_, stream), "cublasSetStream");
  check(functions_.set_workspace(handle_, workspace, bytes), "cublasSetWorkspace");
}

void Cublas::multiply(const CublasProduct& product) {
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const double factors[2] = {product.alpha, 0};
  const float single_factors[2] = {static_cast<float>(product.alpha), 0};
  const bool doubles = counts_in_double(product.compute);
  const void* alpha = doubles ? static_cast<const void*>(&factors[0]) : &single_factors[0];
  const void* beta = doubles ? static_cast<const void*>(&factors[1]) : &single_factors[1];
  for (std::int64_t first = 0; first < product.batch; first += kLargestBatch) {
    check(
        functions_.multiply(
            handle_, operation(product.transpose_a), operation(product.transpose_b), product.m, product.n,
            product.k, alpha, place(product.a, first, size_of(product.type)), product.type, product.a.leading,
            product.a.stride, place(product.b, first, size_of(product.type)), product.type, product.b.leading,
            product.b.stride, beta, place(product.c, first, size_of(product.type_c)), product.type_c,
            product.c.leading, product.c.stride, std::min(kLargestBatch, product.batch - first),
            product.compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
  }
}

std::string Cublas::version() const {
  std::string text;
  for (const libraryPropertyType each : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    check(functions_.property(each, &value), "cublasGetProperty");
    text += (text.empty() ? "" : ".") + std::to_string(value);
  }
  return text;
}

void Cublas::check(cublasStatus_t status, const char* call) const {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw CublasError(std::string(call) + ": " + functions_.words(status));
  }
}

}  // namespace flashsim
