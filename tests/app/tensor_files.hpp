// Small .npy files for runs to read.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "core/base/npy.hpp"
#include "tests/app/process.hpp"
#include "tests/catch.hpp"

namespace flashsim::test {

inline const std::string kFiles = "--q q.npy --k k.npy --v v.npy ";

/// A folder with tensors of 2 query heads, 5 queries, 7 keys and d = 4.
class Tensors {
 public:
  Tensors() {
    put<float>("q.npy", 2, 5, 4, 3);
    put<float>("k.npy", 2, 7, 4, 3);
    put<float>("v.npy", 2, 7, 4, 3);
    put<float>("do.npy", 2, 5, 4, 3);
    put<float>("short.npy", 2, 6, 4, 3);
    put<float>("shallow.npy", 2, 7, 3, 3);
    put<float>("three.npy", 3, 7, 4, 3);
    put<double>("wide.npy", 2, 5, 4, 3);
    put<float>("flat.npy", 1, 5, 4, 2);
    put<float>("flat_kv.npy", 1, 7, 4, 2);
  }
  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }
  [[nodiscard]] nlohmann::json json_of(const std::string& arguments) const {
    const Ran ran = run_shell("flashsim run " + arguments + " --format json", folder_.path());
    INFO(arguments << "\n" << ran.err);
    REQUIRE(ran.status == 0);
    return nlohmann::json::parse(ran.out);
  }

 private:
  template <class T>
  void put(const char* name, std::int64_t heads, std::int64_t rows, std::int64_t columns, int dimensions) {
    Tensor4<T> tensor(1, heads, rows, columns);
    T next = T(0.1);
    for (T& value : tensor.data()) value = next = next * T(3.7) - std::floor(next * T(3.7)) - T(0.5);
    REQUIRE_FALSE(write_npy(folder_ / name, tensor, dimensions));
  }

  TemporaryFolder folder_;
};

}  // namespace flashsim::test
