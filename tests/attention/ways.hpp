// Every way of computing one result: the algorithms, each at several tilings. And small inputs, results in
// words, and bits compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/attention/attend.hpp"
#include "core/attention/comparison.hpp"
#include "core/attention/tolerance.hpp"
#include "core/attention/truth.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"

namespace flashsim::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr NumberType number_type() {
  return sizeof(T) == 8 ? NumberType::fp64 : NumberType::fp32;
}

struct Way {
  Algorithm algorithm;
  Tiling tiling;
  std::int64_t splits = 1;
  [[nodiscard]] Method method() const { return {.algorithm = algorithm, .tiling = tiling, .splits = splits}; }
};

inline std::string text_of(const Way& way) {
  std::string text = fmt::format("{} {}", facts_of(way.algorithm).name, tiling_text(way.tiling));
  return way.splits == 1 ? text : text + fmt::format(" in {}", way.splits);
}

inline std::vector<Way> ways(std::initializer_list<Tiling> tilings) {
  std::vector<Way> all;
  for (const AlgorithmFacts& facts : kAlgorithms) {
    // In three parts, which are fewer than the key tiles, as many, or more.
    const std::int64_t splits = facts.algorithm == Algorithm::split_kv ? 3 : 1;
    for (const Tiling tiling : tilings) all.push_back({facts.algorithm, tiling, splits});
  }
  return all;
}

/// The same ways with the keys in one part: what is asked of the state from tile to tile is asked within a
/// part.
inline std::vector<Way> in_one_part(std::vector<Way> all) {
  for (Way& way : all) way.splits = 1;
  return all;
}

/// Tiles of one key, of two, of four, and of more than any case here has.
inline std::vector<Way> key_tile_ways() { return ways({{1, 1}, {2, 2}, {3, 4}, {128, 128}}); }
/// One query tile or several, ragged and not.
inline std::vector<Way> several_ways() { return ways({{1, 1}, {3, 5}, {4, 2}, {16, 16}, {128, 128}}); }

inline bool is_tiled(const Way& way) { return facts_of(way.algorithm).tiled; }
inline bool is_online(const Way& way) { return facts_of(way.algorithm).online; }
/// P is what the maximum makes of it and O is divided in the end; the others divide P first.
inline bool divides_output(const Way& way) { return facts_of(way.algorithm).rescales; }
/// Keys of different tiles come together when both are done, and not key by key.
inline bool combines_parts(const Way& way) { return divides_output(way) && !is_online(way); }

/// A problem and its tensors.
struct Given {
  Problem problem;
  Inputs<double> inputs;
};

/// A tensor [1, 1, rows, columns].
inline Tensor4<double> matrix(std::int64_t rows, std::int64_t columns, std::vector<double> numbers) {
  Tensor4<double> tensor(1, 1, rows, columns);
  tensor.data() = std::move(numbers);
  return tensor;
}

/// Scores [N, Nkv] as they are, and V [Nkv, 1].
inline Given given_scores(std::int64_t rows, std::vector<double> scores, std::vector<double> v) {
  const auto keys = static_cast<std::int64_t>(v.size());
  return {.problem = {.batch = 1,
                      .heads = 1,
                      .kv_heads = 1,
                      .seq = rows,
                      .kv_seq = keys,
                      .head_dim = 1,
                      .causal = false,
                      .storage = NumberType::fp64},
          .inputs = {.v = matrix(keys, 1, std::move(v)), .scores = matrix(rows, keys, std::move(scores))}};
}

/// Q [N, 1], K and V [Nkv, 1] with scale 1.
inline Given given_products(std::vector<double> q, std::vector<double> k, std::vector<double> v) {
  const auto rows = static_cast<std::int64_t>(q.size());
  const auto keys = static_cast<std::int64_t>(v.size());
  return {.problem = {.batch = 1,
                      .heads = 1,
                      .kv_heads = 1,
                      .seq = rows,
                      .kv_seq = keys,
                      .head_dim = 1,
                      .causal = false,
                      .scale = 1,
                      .storage = NumberType::fp64},
          .inputs = {.q = matrix(rows, 1, std::move(q)),
                     .k = matrix(keys, 1, std::move(k)),
                     .v = matrix(keys, 1, std::move(v))}};
}

/// The scores of one query, given and as the product of Q = [1] and K = S.
inline std::vector<Given> one_query(const std::vector<double>& scores, const std::vector<double>& v) {
  return {given_scores(1, scores, v), given_products({1}, scores, v)};
}

template <class T>
Outputs<T> attend_in(const Way& way, const Given& given, Switches switches = {}) {
  Problem problem = given.problem;
  problem.storage = number_type<T>();
  return attend<T>(problem, way.method(), switches, converted<T>(given.inputs));
}

/// The first few numbers, as a failed test shows them.
template <class T>
std::string first_few(const std::vector<T>& numbers) {
  const std::size_t shown = std::min<std::size_t>(numbers.size(), 8);
  return fmt::format("[{}{}]",
                     fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     shown < numbers.size() ? ", …" : "");
}

/// Both are NaN, the same infinity, or within `roundings` half units of the last place of T (of 1 where
/// they are smaller).
template <class T>
bool is_near(double got, double expected, double roundings = 8) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <=
         roundings * (std::numeric_limits<T>::epsilon() / 2) * std::fmax(1, std::fabs(expected));
}

/// What isn't as expected of a result, or "".
template <class T>
std::string unlike(const Outputs<T>& got, const std::vector<double>& o, const std::vector<double>& lse,
                   double roundings = 8) {
  const auto differ = [&](const Tensor4<T>& tensor, const std::vector<double>& expected) {
    if (tensor.data().size() != expected.size()) return true;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!is_near<T>(static_cast<double>(tensor.data()[i]), expected[i], roundings)) return true;
    }
    return false;
  };
  std::string text;
  if (differ(got.o, o)) text += fmt::format("O is {}, not {}. ", first_few(got.o.data()), first_few(o));
  if (differ(got.lse, lse))
    text += fmt::format("L is {}, not {}. ", first_few(got.lse.data()), first_few(lse));
  return text;
}

/// What isn't as expected of `given` computed in T in any of `all`, or "".
template <class T>
std::string unlike(const std::vector<Way>& all, const Given& given, const std::vector<double>& o,
                   const std::vector<double>& lse, Switches switches = {}, double roundings = 8) {
  std::string text;
  for (const Way& way : all) {
    const std::string each = unlike(attend_in<T>(way, given, switches), o, lse, roundings);
    if (!each.empty()) text += fmt::format("{} {}: {}\n", text_of(way), name_of(number_type<T>()), each);
  }
  return text;
}

/// The same in float and in double.
inline std::string unlike_in_both(const std::vector<Way>& all, const Given& given,
                                  const std::vector<double>& o, const std::vector<double>& lse,
                                  Switches switches = {}, double roundings = 8) {
  return unlike<float>(all, given, o, lse, switches, roundings) +
         unlike<double>(all, given, o, lse, switches, roundings);
}

/// The same bits; any NaN equals any other.
template <class T>
bool same_bits(const T* a, const T* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::memcmp(a + i, b + i, sizeof(T)) != 0) return false;
  }
  return true;
}
template <class T>
bool same_bits(const Tensor4<T>& a, const Tensor4<T>& b) {
  return a.data().size() == b.data().size() && same_bits(a.data().data(), b.data().data(), a.data().size());
}
template <class T>
bool same_bits(const Outputs<T>& a, const Outputs<T>& b) {
  return same_bits(a.o, b.o) && same_bits(a.lse, b.lse);
}

/// Numbers in (−magnitude, magnitude), the same on every machine.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : engine_(seed) {}

  double next(double magnitude) {
    return magnitude * (2 * (static_cast<double>(engine_() >> 11) * 0x1p-53) - 1);
  }
  std::int64_t from_to(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  /// Multiples of 1/64, so that adding them to one another is exact in float32 too.
  double next_exact(double magnitude) { return std::floor(next(magnitude) * 64) / 64; }

  void fill(Tensor4<double>& tensor, double magnitude) {
    for (double& value : tensor.data()) value = next(magnitude);
  }

 private:
  std::mt19937_64 engine_;
};

/// Q, K and V of a problem, drawn.
inline Inputs<double> drawn_inputs(const Problem& p, RandomNumbers& random, double magnitude) {
  Inputs<double> inputs{.q = Tensor4<double>(p.batch, p.heads, p.seq, p.head_dim),
                        .k = Tensor4<double>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                        .v = Tensor4<double>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)};
  for (Tensor4<double>* each : {&inputs.q, &inputs.k, &inputs.v}) random.fill(*each, magnitude);
  return inputs;
}

/// How far a result in T is from the truth of the inputs as T holds them, in parts of the tolerance: more
/// than 1, or NaN, is wrong.
struct Misses {
  double output = 0;
  double lse = 0;
  [[nodiscard]] bool none() const { return output <= 1 && lse <= 1; }
};
template <class T>
Misses misses_of(const Way& way, const Given& given, Switches switches = {}) {
  Problem problem = given.problem;
  problem.storage = number_type<T>();
  const Truth truth = truth_of(problem, converted<T>(given.inputs));
  const Tolerance tolerance =
      tolerance_of<T>(problem, way.method(), truth.magnitudes, given.inputs.scores_given());
  const Outputs<T> got = attend_in<T>(way, given, switches);
  const auto parts = [](const Comparison& worst, double allowed) {
    return worst.max_abs.size == 0 ? 0 : worst.max_abs.size / allowed;
  };
  return {.output = parts(compare(got.o, truth.outputs.o), tolerance.output.value()),
          .lse = parts(compare(got.lse, truth.outputs.lse), tolerance.lse.value())};
}

}  // namespace flashsim::test
