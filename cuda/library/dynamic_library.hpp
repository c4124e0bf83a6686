// A shared library that is opened while the program runs, so that the binary starts where it is missing:
// cuBLAS, CUPTI, NVML. Their headers give the types, and this gives the functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

namespace flashsim {

class DynamicLibrary {
 public:
  /// The first library of `names` that opens; a null or empty name is passed over. Where none opens,
  /// `why_not` becomes the loader's words on each of them, on one line.
  static std::optional<DynamicLibrary> open(std::span<const char* const> names /*tried in turn*/,
                                            std::string& why_not);

  DynamicLibrary(DynamicLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  /// `F` is the function's type: function<int(int)>("abs"), function<decltype(cublasCreate)>(…). Null where
  /// the library has no such name. Good for as long as the library is open.
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(address(name));
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  [[nodiscard]] void* address(const char* name) const;

  void* handle_;
};

}  // namespace flashsim
