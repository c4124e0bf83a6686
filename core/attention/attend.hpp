// Attention over all batch entries and heads: the walk of every head is divided by tile among threads, and
// each part is executed by an executor of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/attention/tensors.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/switches.hpp"
#include "core/schedule/chip_values.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

/// One query tile of one walk, which is that of a head, or of a key/value head where groups are packed.
struct QueryTilePlace {
  std::int64_t batch = 0, head = 0, query_tile = 0;
};

/// How an execution goes about it. None of this changes a bit of the result.
struct Execution {
  int threads = 1;  ///< at least 1
  /// Told every step of the walks, each step once: one listener a thread, or none at all.
  std::vector<Listener*> listeners;
  /// Told every step and what it left; the execution then runs on one thread, each head's walk as it stands.
  StepObserver* observer = nullptr;
  /// With an observer: this query tile alone is executed, and the rest of the result stays 0.
  std::optional<QueryTilePlace> only;
  /// Told now and then how much is done, from 0 to 1, by one thread at a time.
  std::function<void(double done)> progress;
};

/// Executes `method`'s forward pass in T = float or double, sums and statistics in T as well. The inputs have
/// the shapes of `problem`, which is valid, and hold what its storage type can hold. Where that type is
/// narrower than T, P and O are rounded to it, and S where it is stored.
///
/// Of eager's passes dropout is none that can be executed, and neither is a mask of padded keys.
template <class T>
Outputs<T> attend(const Problem& problem, const Method& method, Switches switches, const Inputs<T>& inputs,
                  const Execution& execution = {});

/// The same of an algorithm that has nothing to choose but its tiles.
template <class T>
Outputs<T> attend(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
                  const Inputs<T>& inputs, const Execution& execution = {}) {
  return attend<T>(problem, Method{.algorithm = algorithm, .tiling = tiling}, switches, inputs, execution);
}

/// The gradients can be executed, and not only accounted for.
constexpr bool executes_backward(Algorithm algorithm) {
  return algorithm == Algorithm::standard || algorithm == Algorithm::flash2;
}

/// The gradients of Σ dO ∘ O, for `standard` (P kept) and `flash2` (P recomputed from Q, K and L). dO:
/// [B, H, N, d]; `outputs` are those of the forward pass. Scores may not be given.
template <class T>
Gradients<T> attend_backward(Algorithm algorithm, const Problem& problem, Tiling tiling, Switches switches,
                             const Inputs<T>& inputs, const Outputs<T>& outputs, const Tensor4<T>& d_o,
                             const Execution& execution = {});

/// `tensor`, rounded to the storage type of `problem` where that is narrower than T.
template <class T>
void round_to_storage(const Problem& problem, Tensor4<T>& tensor);

/// The instruction set that the vector code runs on here: "AVX3", "AVX2", "NEON" …
const char* vector_target();

}  // namespace flashsim
