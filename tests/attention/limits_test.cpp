// The ends of every range: head dimensions from 1 to 512, one query, one key, tiles larger than all, scales
// of zero and below; and keys split anywhere and merged again.
#include <algorithm>

#include "core/attention/verification.hpp"
#include "core/problem/mask.hpp"
#include "tests/attention/backward.hpp"
#include "tests/attention/failures.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::backward_ways;
using test::drawn_inputs;
using test::drawn_output_gradient;
using test::Failures;
using test::Given;
using test::in_every_way;
using test::misses_of;
using test::named;
using test::RandomNumbers;
using test::same_bits;
using test::several_ways;
using test::Way;
using test::ways;

template <class T>
bool gradients_agree(const Way& way, const Given& given, const Tensor4<double>& d_o) {
  const auto all = test::in_type<T>(given, d_o);
  return verify_gradients(way.algorithm, all.problem, way.tiling, {}, all.inputs, all.d_o,
                          gradients_of(way, all))
      .agrees();
}

TEST_CASE("every head dimension from 1 to 512 is within rounding of the truth, forward and backward") {
  RandomNumbers random(301);
  Failures failures;
  for (std::int64_t d = 1; d <= 512; d = d < 130 || d >= 505 ? d + 1 : d + 25) {
    const Problem problem{
        .batch = 1, .heads = 1, .kv_heads = 1, .seq = 3, .kv_seq = 5, .head_dim = d, .causal = d % 2 == 0};
    const Given given{problem, drawn_inputs(problem, random, 1)};
    const Tensor4<double> d_o = drawn_output_gradient(problem, random);
    in_every_way(ways({{2, 2}}), [&](auto type, const Way& way) {
      failures.add(misses_of<decltype(type)>(way, given).none(),
                   named<decltype(type)>(way, fmt::format("d {}", d)));
    });
    in_every_way(backward_ways({{2, 2}}), [&](auto type, const Way& way) {
      failures.add(gradients_agree<decltype(type)>(way, given, d_o),
                   named<decltype(type)>(way, fmt::format("backward, d {}", d)));
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("one query, one key, both, and tiles far larger than either") {
  RandomNumbers random(302);
  Failures failures;
  for (const auto& [n, nkv] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 50}, {50, 1}, {70, 3}}) {
    for (const bool causal : {false, true}) {
      const Problem problem{
          .batch = 2, .heads = 4, .kv_heads = 2, .seq = n, .kv_seq = nkv, .head_dim = 9, .causal = causal};
      const Given given{problem, drawn_inputs(problem, random, 2)};
      const Tensor4<double> d_o = drawn_output_gradient(problem, random);
      const std::initializer_list<Tiling> tilings{{1, 1}, {64, 1}, {1, 64}, {1000, 1000}, {33, 2}};
      in_every_way(ways(tilings), [&](auto type, const Way& way) {
        failures.add(misses_of<decltype(type)>(way, given).none(),
                     named<decltype(type)>(way, fmt::format("{} × {}", n, nkv)));
      });
      in_every_way(backward_ways(tilings), [&](auto type, const Way& way) {
        failures.add(gradients_agree<decltype(type)>(way, given, d_o),
                     named<decltype(type)>(way, fmt::format("backward, {} × {}", n, nkv)));
      });
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("tiles of every size about a panel's are within rounding of the truth") {
  RandomNumbers random(303);
  Failures failures;
  const Problem problem{
      .batch = 1, .heads = 1, .kv_heads = 1, .seq = 70, .kv_seq = 70, .head_dim = 5, .causal = true};
  const Given given{problem, drawn_inputs(problem, random, 2)};
  const Tensor4<double> d_o = drawn_output_gradient(problem, random);
  for (const std::int64_t br : {7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65}) {
    in_every_way(ways({{br, 17}}), [&](auto type, const Way& way) {
      failures.add(misses_of<decltype(type)>(way, given).none(), named<decltype(type)>(way, "forward"));
    });
    in_every_way(backward_ways({{br, 17}}), [&](auto type, const Way& way) {
      failures.add(gradients_agree<decltype(type)>(way, given, d_o), named<decltype(type)>(way, "backward"));
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("tile rows change no bit: a row's sums run over the keys alone") {
  RandomNumbers random(304);
  Failures failures;
  for (const bool causal : {false, true}) {
    const Problem problem{
        .batch = 1, .heads = 1, .kv_heads = 1, .seq = 70, .kv_seq = 50, .head_dim = 5, .causal = causal};
    const Given given{problem, drawn_inputs(problem, random, 2)};
    for (const std::int64_t bc : {1, 7, 64}) {
      in_every_way(ways({{1, bc}}), [&](auto type, const Way& one_row) {
        using T = decltype(type);
        const Outputs<T> expected = test::attend_in<T>(one_row, given);
        for (const std::int64_t br : {2, 15, 16, 17, 33, 70, 128}) {
          const Way way{one_row.algorithm, {br, bc}, one_row.splits};
          failures.add(same_bits(test::attend_in<T>(way, given), expected), named<T>(way, "rows"));
        }
      });
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("a scale of zero gives the mean of what is visible") {
  RandomNumbers random(305);
  Failures failures;
  for (const bool causal : {false, true}) {
    const Problem problem{.batch = 1,
                          .heads = 1,
                          .kv_heads = 1,
                          .seq = 6,
                          .kv_seq = 9,
                          .head_dim = 2,
                          .causal = causal,
                          .scale = 0};
    const Given given{problem, drawn_inputs(problem, random, 2)};
    const Tensor4<double> d_o = drawn_output_gradient(problem, random);
    in_every_way(several_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Outputs<T> got = test::attend_in<T>(way, given);
      for (std::int64_t row = 0; row < 6; ++row) {
        const std::int64_t visible = visible_keys(problem, row);
        const T lse = got.lse.matrix(0, 0)(row, 0);
        failures.add(test::is_near<T>(lse, std::log(static_cast<double>(visible))), named<T>(way, "L"));
        for (std::int64_t x = 0; x < 2; ++x) {
          double mean = 0;
          for (std::int64_t key = 0; key < visible; ++key) {
            mean += static_cast<T>(given.inputs.v.matrix(0, 0)(key, x)) / static_cast<double>(visible);
          }
          failures.add(test::is_near<T>(got.o.matrix(0, 0)(row, x), mean, 40), named<T>(way, "O"));
        }
      }
    });
    in_every_way(backward_ways({{1, 1}, {4, 4}, {128, 128}}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Gradients<T> gradients = gradients_of(way, test::in_type<T>(given, d_o));
      const auto zero = [](T value) { return value == 0; };
      failures.add(std::all_of(gradients.dq.data().begin(), gradients.dq.data().end(), zero),
                   named<T>(way, "dQ"));
      failures.add(std::all_of(gradients.dk.data().begin(), gradients.dk.data().end(), zero),
                   named<T>(way, "dK"));
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("a negative scale is a positive one with the queries turned about, bit for bit") {
  RandomNumbers random(306);
  Failures failures;
  for (int i = 0; i < 10; ++i) {
    Problem problem{.batch = 1,
                    .heads = 1,
                    .kv_heads = 1,
                    .seq = random.from_to(1, 20),
                    .kv_seq = random.from_to(1, 20),
                    .head_dim = random.from_to(1, 9),
                    .causal = i % 2 == 0,
                    .scale = -0.6};
    const Given given{problem, drawn_inputs(problem, random, 2)};
    Given turned = given;
    turned.problem.scale = 0.6;
    for (double& value : turned.inputs.q.data()) value = -value;
    in_every_way(several_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      failures.add(same_bits(test::attend_in<T>(way, given), test::attend_in<T>(way, turned)),
                   named<T>(way, "turned"));
      failures.add(misses_of<T>(way, given).none(), named<T>(way, "negative"));
    });
  }
  CHECK(failures.first() == "");
}

/// The keys [begin, end) of `given`.
Given keys_of(const Given& given, std::int64_t begin, std::int64_t end) {
  Given part = given;
  part.problem.kv_seq = end - begin;
  for (auto tensor : {&Inputs<double>::k, &Inputs<double>::v}) {
    const Tensor4<double>& all = given.inputs.*tensor;
    Tensor4<double> some(1, 1, end - begin, all.columns());
    std::copy_n(all.matrix(0, 0).row(begin), some.data().size(), some.data().begin());
    part.inputs.*tensor = some;
  }
  return part;
}

TEST_CASE("any split of the keys merges to the whole, through L") {
  RandomNumbers random(307);
  Failures failures;
  for (int i = 0; i < 15; ++i) {
    const Problem problem{.batch = 1,
                          .heads = 1,
                          .kv_heads = 1,
                          .seq = random.from_to(1, 6),
                          .kv_seq = random.from_to(2, 40),
                          .head_dim = random.from_to(1, 6),
                          .causal = false};
    const Given given{problem, drawn_inputs(problem, random, 3)};
    std::vector<std::int64_t> ends{0};
    while (ends.back() < problem.kv_seq) ends.push_back(random.from_to(ends.back() + 1, problem.kv_seq));
    in_every_way(ways({{4, 4}, {128, 128}}), [&](auto type, const Way& way) {
      using T = decltype(type);
      std::vector<Outputs<T>> parts;
      for (std::size_t part = 0; part + 1 < ends.size(); ++part) {
        parts.push_back(test::attend_in<T>(way, keys_of(given, ends[part], ends[part + 1])));
      }
      // L = ln Σ e^(L_s) and o = Σ e^(L_s − L) o_s, in T as the parts are.
      Outputs<T> merged{Tensor4<T>(1, 1, problem.seq, problem.head_dim), Tensor4<T>(1, 1, problem.seq, 1)};
      for (std::int64_t row = 0; row < problem.seq; ++row) {
        T most = -std::numeric_limits<T>::infinity();
        for (const Outputs<T>& part : parts) most = std::max(most, part.lse.matrix(0, 0)(row, 0));
        T sum = 0;
        for (const Outputs<T>& part : parts) sum += std::exp(part.lse.matrix(0, 0)(row, 0) - most);
        const T lse = most + std::log(sum);
        merged.lse.matrix(0, 0)(row, 0) = lse;
        for (const Outputs<T>& part : parts) {
          const T weight = std::exp(part.lse.matrix(0, 0)(row, 0) - lse);
          for (std::int64_t x = 0; x < problem.head_dim; ++x) {
            merged.o.matrix(0, 0)(row, x) += weight * part.o.matrix(0, 0)(row, x);
          }
        }
      }
      Problem whole = problem;
      whole.storage = test::number_type<T>();
      // The tolerance is that of tiles of one key, which are merged as splits are.
      const Verification found =
          verify(Algorithm::flash1, whole, {1, 1}, {}, converted<T>(given.inputs), merged);
      failures.add(found.agrees() && !found.says_nothing(),
                   named<T>(way, fmt::format("{} parts of {}", parts.size(), problem.kv_seq)));
    });
  }
  CHECK(failures.first() == "");
}

}  // namespace
}  // namespace flashsim
