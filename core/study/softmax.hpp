// Softmax by itself, every way beside every other: how often each element crosses, and what that comes to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/account/softmax.hpp"
#include "core/base/result.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/softmax.hpp"

namespace flashsim {

/// What is asked for; what is absent is chosen.
struct SoftmaxRequest {
  std::optional<std::int64_t> rows, columns, top_k;
  std::optional<NumberType> dtype;
  std::optional<Bytes> shared_memory;
  std::optional<std::string> gpu;
  bool count_always = false;  ///< count walks of any length
};

struct SoftmaxAccount {
  SoftmaxWay way{};
  SoftmaxPrediction prediction;
  std::optional<SoftmaxTally> counted;  ///< absent where the walk is too long and wasn't asked for
  std::vector<Discrepancy> discrepancies;
  std::int64_t loads = 0;   ///< of each element, of x or y
  std::int64_t stores = 0;  ///< of each element of y; the k results are none
};

/// Where exp(x) alone goes wrong, in the type that sums are kept in.
struct NaiveLimits {
  NumberType accumulation{};
  double largest = 0;       ///< x beyond which exp(x) is infinite
  double largest_even = 0;  ///< the same for the sum of a row of equal x
  double smallest = 0;      ///< x below which exp(x) is 0, and y of a row of such x 0/0
};

struct SoftmaxReport {
  SoftmaxProblem problem;
  Machine machine;
  std::string gpu;      ///< as it was asked for: a name or a path
  Bytes shared_memory;  ///< of a block
  RowsOnChip chip;
  NaiveLimits naive;
  std::vector<SoftmaxAccount> ways;  ///< with top-k all, without it those that select nothing

  /// false as soon as one way differs, absent where nothing was counted.
  [[nodiscard]] std::optional<bool> predicted_equals_counted() const;
};

/// Where the figures come from. Tests put a wrong one in its place and see it reported.
using SoftmaxPredictor = SoftmaxPrediction (*)(SoftmaxWay, const SoftmaxProblem&, const RowsOnChip&);

/// Errors: whatever is wrong with the request, and counts that leave 64 bits.
Result<SoftmaxReport> make_softmax(const SoftmaxRequest& request,
                                   SoftmaxPredictor predictor = predict_softmax);

/// `over`, and `under` where it is silent; another GPU brings its own shared memory.
SoftmaxRequest laid_over(SoftmaxRequest over, const SoftmaxRequest& under);

/// Reads the `input` of a report's JSON, or that object alone. `source` names it in errors.
Result<SoftmaxRequest> read_softmax_request(std::string_view text, const std::string& source);

/// "flashsim.softmax/1"
nlohmann::ordered_json softmax_json(const SoftmaxReport& report);

}  // namespace flashsim
