// Gradients: against finite differences and the truth, alone and in groups, and what NaN, empty rows and
// the mask leave untouched.
#include <algorithm>

#include "core/attention/true_gradients.hpp"
#include "core/attention/verification.hpp"
#include "tests/attention/backward.hpp"
#include "tests/attention/failures.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::backward_ways;
using test::BackwardGiven;
using test::drawn_inputs;
using test::drawn_output_gradient;
using test::Failures;
using test::Given;
using test::in_every_way;
using test::kInfinity;
using test::kNaN;
using test::named;
using test::RandomNumbers;
using test::same_bits;
using test::Way;

std::vector<Way> several_backward_ways() {
  return backward_ways({{1, 1}, {3, 5}, {4, 2}, {16, 16}, {128, 128}});
}

/// Σ dO ∘ O.
double loss(const Way& way, const BackwardGiven<double>& given) {
  const Outputs<double> out = attend<double>(given.problem, way.method(), {}, given.inputs);
  double sum = 0;
  for (std::size_t i = 0; i < given.d_o.data().size(); ++i) sum += given.d_o.data()[i] * out.o.data()[i];
  return sum;
}

TEST_CASE("every element of a gradient is the slope of the loss") {
  RandomNumbers random(201);
  struct Mask {
    bool causal;
    CausalAlignment alignment;
  };
  for (const auto& [causal, alignment] :
       {Mask{false, CausalAlignment::bottom_right}, Mask{true, CausalAlignment::bottom_right},
        Mask{true, CausalAlignment::top_left}}) {
    const Problem problem{.batch = 1,
                          .heads = 4,
                          .kv_heads = 2,
                          .seq = 4,
                          .kv_seq = 5,
                          .head_dim = 3,
                          .causal = causal,
                          .alignment = alignment,
                          .scale = 0.8,
                          .storage = NumberType::fp64};
    BackwardGiven<double> given{problem, drawn_inputs(problem, random, 1),
                                drawn_output_gradient(problem, random)};
    for (const Way& way : backward_ways({{1, 1}, {3, 2}, {128, 128}})) {
      const Gradients<double> gradients = gradients_of(way, given);
      double worst = 0;
      const auto compare_slopes = [&](Tensor4<double>& tensor, const Tensor4<double>& gradient) {
        REQUIRE(tensor.data().size() == gradient.data().size());
        for (std::size_t i = 0; i < tensor.data().size(); ++i) {
          constexpr double kStep = 1e-5;
          const double before = tensor.data()[i];
          tensor.data()[i] = before + kStep;
          const double above = loss(way, given);
          tensor.data()[i] = before - kStep;
          const double below = loss(way, given);
          tensor.data()[i] = before;
          worst = std::fmax(worst, std::fabs((above - below) / (2 * kStep) - gradient.data()[i]));
        }
      };
      compare_slopes(given.inputs.q, gradients.dq);
      compare_slopes(given.inputs.k, gradients.dk);
      compare_slopes(given.inputs.v, gradients.dv);
      INFO(text_of(way) << ", causal " << causal << " " << name_of(alignment));
      CHECK(worst < 1e-8);
    }
  }
}

TEST_CASE("whatever the shape, the tiles and the types, gradients are within rounding of the truth") {
  test::RandomShapes shapes(202);
  RandomNumbers random(203);
  Failures failures;
  int told = 0;
  for (int i = 0; i < 40; ++i) {
    test::Shape shape = shapes.next(30);
    if (i % 3 == 0) shape.problem.scale = random.next(1);
    const Given given{shape.problem, drawn_inputs(shape.problem, random, 1.5)};
    const Tensor4<double> d_o = drawn_output_gradient(shape.problem, random);
    in_every_way(backward_ways({shape.tiling, {128, 128}}), [&](auto type, const Way& way) {
      using T = decltype(type);
      BackwardGiven<T> all = test::stored<T>(given, d_o);
      if (sizeof(T) == 4 && all.problem.storage == NumberType::fp64) all = test::in_type<T>(given, d_o);
      const GradientVerification found = verify_gradients(way.algorithm, all.problem, way.tiling, {},
                                                          all.inputs, all.d_o, gradients_of(way, all));
      failures.add(found.agrees(), named<T>(way, test::text_of(shape)));
      told += found.says_nothing() ? 0 : 1;
    });
  }
  CHECK(failures.runs() == 40 * 2 * 2 * 2);
  CHECK(failures.first() == "");
  CHECK(told > 160);  // a tolerance as large as the gradients would let anything pass
}

TEST_CASE("standard and flash2 have the same gradients") {
  test::RandomShapes shapes(204);
  RandomNumbers random(205);
  Failures failures;
  for (int i = 0; i < 30; ++i) {
    const test::Shape shape = shapes.next(30);
    const auto given = test::in_type<double>({shape.problem, drawn_inputs(shape.problem, random, 1.5)},
                                             drawn_output_gradient(shape.problem, random));
    const Gradients<double> standard = gradients_of<double>({Algorithm::standard, shape.tiling}, given);
    const Gradients<double> flash = gradients_of<double>({Algorithm::flash2, shape.tiling}, given);
    for (auto tensor : {&Gradients<double>::dq, &Gradients<double>::dk, &Gradients<double>::dv}) {
      failures.add(compare(standard.*tensor, flash.*tensor).agrees_within(1e-12), test::text_of(shape));
    }
  }
  CHECK(failures.first() == "");
}

/// One matrix as a tensor of its own.
template <class T>
Tensor4<T> cut(const Tensor4<T>& t, std::int64_t b, std::int64_t h) {
  Tensor4<T> one(1, 1, t.rows(), t.columns());
  std::copy_n(t.matrix(b, h).data, one.data().size(), one.data().begin());
  return one;
}

template <class T>
BackwardGiven<T> one_head(const BackwardGiven<T>& given, std::int64_t b, std::int64_t h) {
  const std::int64_t kv = given.problem.kv_head_of(h);
  BackwardGiven<T> one{
      given.problem,
      {.q = cut(given.inputs.q, b, h), .k = cut(given.inputs.k, b, kv), .v = cut(given.inputs.v, b, kv)},
      cut(given.d_o, b, h)};
  one.problem.batch = one.problem.heads = one.problem.kv_heads = 1;
  return one;
}

TEST_CASE("a head alone has the gradients that it has among others, and a group the sum of its heads'") {
  test::RandomShapes shapes(206);
  RandomNumbers random(207);
  Failures failures;
  for (int i = 0; i < 20; ++i) {
    const test::Shape shape = shapes.next(20);
    const Problem& p = shape.problem;
    const Given drawn{p, drawn_inputs(p, random, 2)};
    const Tensor4<double> d_o = drawn_output_gradient(p, random);
    in_every_way(backward_ways({shape.tiling}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const auto given = test::in_type<T>(drawn, d_o);
      const Gradients<T> all = gradients_of(way, given, {.threads = 2});
      Gradients<T> sum{Tensor4<T>(p.batch, p.heads, p.seq, p.head_dim),
                       Tensor4<T>(p.batch, p.kv_heads, p.kv_seq, p.head_dim),
                       Tensor4<T>(p.batch, p.kv_heads, p.kv_seq, p.head_dim)};
      for (std::int64_t b = 0; b < p.batch; ++b) {
        for (std::int64_t h = 0; h < p.heads; ++h) {
          const Gradients<T> one = gradients_of(way, one_head(given, b, h));
          std::copy(one.dq.data().begin(), one.dq.data().end(), sum.dq.matrix(b, h).data);
          for (std::size_t e = 0; e < one.dk.data().size(); ++e) {
            sum.dk.matrix(b, p.kv_head_of(h)).data[e] += one.dk.data()[e];
            sum.dv.matrix(b, p.kv_head_of(h)).data[e] += one.dv.data()[e];
          }
        }
      }
      failures.add(same_bits(all, sum), named<T>(way, test::text_of(shape)));
    });
  }
  CHECK(failures.first() == "");
}

/// One head with N queries on Nkv keys, and what its gradients are.
struct Masked {
  Given given;
  Tensor4<double> d_o;
};

std::vector<Masked> masked_heads(RandomNumbers& random) {
  std::vector<Masked> all;
  for (const CausalAlignment alignment : {CausalAlignment::bottom_right, CausalAlignment::top_left}) {
    for (const auto& [n, nkv] : {std::pair<std::int64_t, std::int64_t>{7, 7}, {5, 11}, {11, 5}, {20, 9}}) {
      const Problem problem{.batch = 1,
                            .heads = 1,
                            .kv_heads = 1,
                            .seq = n,
                            .kv_seq = nkv,
                            .head_dim = 3,
                            .causal = true,
                            .alignment = alignment};
      all.push_back({{problem, drawn_inputs(problem, random, 2)}, drawn_output_gradient(problem, random)});
    }
  }
  return all;
}

void fill_row(Tensor4<double>& tensor, std::int64_t row, double value) {
  std::fill_n(tensor.matrix(0, 0).row(row), tensor.columns(), value);
}

/// Row by row: NaN all along where `poisoned`, and elsewhere the bits that it had.
template <class T, class Poisoned>
bool poisons_only(const Tensor4<T>& got, const Tensor4<T>& before, Poisoned poisoned) {
  for (std::int64_t row = 0; row < got.rows(); ++row) {
    const T* is = got.matrix(0, 0).row(row);
    const T* was = before.matrix(0, 0).row(row);
    const bool nan = std::all_of(is, is + got.columns(), [](T value) { return std::isnan(value); });
    const bool same = same_bits(is, was, static_cast<std::size_t>(got.columns())) &&
                      std::none_of(is, is + got.columns(), [](T value) { return std::isnan(value); });
    if (!(poisoned(row) ? nan : same)) return false;
  }
  return true;
}

TEST_CASE(
    "a NaN in a query or its dO makes the gradients of that query and the keys it sees NaN, no others") {
  RandomNumbers random(208);
  Failures failures;
  for (const Masked& head : masked_heads(random)) {
    const Problem& p = head.given.problem;
    for (std::int64_t row = 0; row < p.seq; ++row) {
      for (const bool in_query : {true, false}) {
        Masked spoilt = head;
        fill_row(in_query ? spoilt.given.inputs.q : spoilt.d_o, row, kNaN);
        in_every_way(several_backward_ways(), [&](auto type, const Way& way) {
          using T = decltype(type);
          const Gradients<T> before = gradients_of(way, test::in_type<T>(head.given, head.d_o));
          const Gradients<T> after = gradients_of(way, test::in_type<T>(spoilt.given, spoilt.d_o));
          const auto sees = [&](std::int64_t key) { return test::visible(p, row, key); };
          const auto is_row = [&](std::int64_t r) { return r == row && test::visible(p, row, 0); };
          const std::string where = fmt::format("{} {} of {} × {} {}", in_query ? "query" : "dO", row, p.seq,
                                                p.kv_seq, name_of(p.alignment));
          failures.add(poisons_only(after.dq, before.dq, is_row), named<T>(way, "dQ, " + where));
          failures.add(poisons_only(after.dk, before.dk, sees), named<T>(way, "dK, " + where));
          failures.add(poisons_only(after.dv, before.dv, sees), named<T>(way, "dV, " + where));
        });
      }
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("a NaN in a key or value leaves the gradients of the rows that don't see it as they are") {
  RandomNumbers random(209);
  Failures failures;
  for (const Masked& head : masked_heads(random)) {
    const Problem& p = head.given.problem;
    for (std::int64_t key = 0; key < p.kv_seq; ++key) {
      for (const bool in_key : {true, false}) {
        Masked spoilt = head;
        fill_row(in_key ? spoilt.given.inputs.k : spoilt.given.inputs.v, key, kNaN);
        in_every_way(several_backward_ways(), [&](auto type, const Way& way) {
          using T = decltype(type);
          const Gradients<T> before = gradients_of(way, test::in_type<T>(head.given, head.d_o));
          const Gradients<T> after = gradients_of(way, test::in_type<T>(spoilt.given, spoilt.d_o));
          const auto sees_it = [&](std::int64_t row) { return test::visible(p, row, key); };
          // A row that sees it takes along every key that it sees: dK through dS, and dV through P, where V
          // has no part.
          const auto is_taken = [&](std::int64_t other) {
            for (std::int64_t row = 0; row < p.seq; ++row) {
              if (sees_it(row) && test::visible(p, row, other)) return true;
            }
            return false;
          };
          const auto is_taken_through_p = [&](std::int64_t other) { return in_key && is_taken(other); };
          const std::string where = fmt::format("{} {} of {} × {} {}", in_key ? "key" : "value", key, p.seq,
                                                p.kv_seq, name_of(p.alignment));
          failures.add(poisons_only(after.dq, before.dq, sees_it), named<T>(way, "dQ, " + where));
          failures.add(poisons_only(after.dk, before.dk, is_taken), named<T>(way, "dK, " + where));
          failures.add(poisons_only(after.dv, before.dv, is_taken_through_p), named<T>(way, "dV, " + where));
        });
      }
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("keys that no query sees have gradients of zero, whatever they hold") {
  RandomNumbers random(210);
  const Problem problem{.batch = 1,
                        .heads = 1,
                        .kv_heads = 1,
                        .seq = 5,
                        .kv_seq = 12,
                        .head_dim = 3,
                        .causal = true,
                        .alignment = CausalAlignment::top_left};
  const Given given{problem, drawn_inputs(problem, random, 2)};
  const Tensor4<double> d_o = drawn_output_gradient(problem, random);
  Failures failures;
  for (const double hidden : {kNaN, kInfinity, -kInfinity, 1e30}) {
    Given replaced = given;
    for (std::int64_t key = 5; key < 12; ++key) {
      fill_row(replaced.inputs.k, key, hidden);
      fill_row(replaced.inputs.v, key, hidden);
    }
    in_every_way(several_backward_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Gradients<T> before = gradients_of(way, test::in_type<T>(given, d_o));
      const Gradients<T> after = gradients_of(way, test::in_type<T>(replaced, d_o));
      failures.add(same_bits(before, after), named<T>(way, fmt::format("{} hidden", hidden)));
      for (std::int64_t key = 5; key < 12; ++key) {
        for (std::int64_t x = 0; x < 3; ++x) {
          failures.add(after.dk.matrix(0, 0)(key, x) == 0 && after.dv.matrix(0, 0)(key, x) == 0,
                       named<T>(way, "not zero"));
        }
      }
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("empty rows have a dQ of zero and add nothing to dK and dV, whatever their dO holds") {
  RandomNumbers random(211);
  for (const std::int64_t nkv : {1, 4, 9}) {
    // Bottom-right: the first 12 − Nkv rows see nothing.
    const Problem problem{.batch = 1, .heads = 1, .kv_heads = 1, .seq = 12, .kv_seq = nkv, .head_dim = 3};
    const Given given{problem, drawn_inputs(problem, random, 2)};
    const Tensor4<double> d_o = drawn_output_gradient(problem, random);
    Failures failures;
    for (const double held : {0.0, 5.0, kNaN, kInfinity}) {
      Given replaced = given;
      Tensor4<double> replaced_d_o = d_o;
      for (std::int64_t row = 0; row < 12 - nkv; ++row) {
        fill_row(replaced_d_o, row, held);
        fill_row(replaced.inputs.q, row, held);
      }
      in_every_way(several_backward_ways(), [&](auto type, const Way& way) {
        using T = decltype(type);
        const Gradients<T> before = gradients_of(way, test::in_type<T>(given, d_o));
        const Gradients<T> after = gradients_of(way, test::in_type<T>(replaced, replaced_d_o));
        failures.add(same_bits(before, after), named<T>(way, fmt::format("{} in the rows", held)));
        const T* dq = after.dq.data().data();
        failures.add(std::all_of(dq, dq + (12 - nkv) * 3, [](T value) { return value == 0; }),
                     named<T>(way, "dQ"));
        failures.add(
            std::any_of(dq + (12 - nkv) * 3, dq + 36, [](T value) { return value != 0; }) || nkv == 1,
            named<T>(way, "all of dQ"));
      });
    }
    INFO(nkv << " keys");
    CHECK(failures.first() == "");
  }
}

TEST_CASE("a row whose scores are all −∞ has gradients of zero") {
  // K is −∞ throughout and Q is positive.
  Given given = test::given_products({1, 2}, {-kInfinity, -kInfinity}, {5, 7});
  const Tensor4<double> d_o = test::matrix(2, 1, {3, -4});
  for (const Way& way : several_backward_ways()) {
    INFO(text_of(way));
    const auto single = gradients_of(way, test::in_type<float>(given, d_o));
    const auto twice = gradients_of(way, test::in_type<double>(given, d_o));
    CHECK(single.dv.data() == std::vector<float>{0, 0});
    CHECK(twice.dv.data() == std::vector<double>{0, 0});
    CHECK(single.dq.data() == std::vector<float>{0, 0});
    CHECK(twice.dq.data() == std::vector<double>{0, 0});
    CHECK(single.dk.data() == std::vector<float>{0, 0});
    CHECK(twice.dk.data() == std::vector<double>{0, 0});
  }
}

TEST_CASE("a gradient by hand: two equal keys share what dO says") {
  // P = ½, ½; D = ½ (1 + 3) · 2 = 4; dP = 2, 6; dS = −1, 1.
  const Given given = test::given_products({5}, {0, 0}, {1, 3});
  const Tensor4<double> d_o = test::matrix(1, 1, {2});
  for (const Way& way : several_backward_ways()) {
    INFO(text_of(way));
    const auto gradients = gradients_of(way, test::in_type<float>(given, d_o));
    CHECK(gradients.dv.data() == std::vector<float>{1, 1});
    CHECK(gradients.dk.data() == std::vector<float>{-5, 5});
    CHECK(gradients.dq.data() == std::vector<float>{0});
  }
}

TEST_CASE("turning the signs of the scale and of Q turns the sign of dQ alone, bit for bit") {
  RandomNumbers random(212);
  Failures failures;
  for (int i = 0; i < 10; ++i) {
    Problem problem{.batch = 1,
                    .heads = 2,
                    .kv_heads = 1,
                    .seq = random.from_to(1, 12),
                    .kv_seq = random.from_to(1, 12),
                    .head_dim = random.from_to(1, 7),
                    .causal = i % 2 == 0,
                    .scale = 0.7};
    Given given{problem, drawn_inputs(problem, random, 2)};
    const Tensor4<double> d_o = drawn_output_gradient(problem, random);
    Given turned = given;
    turned.problem.scale = -0.7;
    for (double& value : turned.inputs.q.data()) value = -value;
    in_every_way(several_backward_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Gradients<T> before = gradients_of(way, test::in_type<T>(given, d_o));
      Gradients<T> after = gradients_of(way, test::in_type<T>(turned, d_o));
      const auto equal = [](const Tensor4<T>& a, const Tensor4<T>& b, T sign) {
        return std::equal(a.data().begin(), a.data().end(), b.data().begin(),
                          [&](T x, T y) { return x == sign * y; });
      };
      failures.add(equal(after.dq, before.dq, T(-1)), named<T>(way, "dQ"));
      failures.add(equal(after.dk, before.dk, T(1)), named<T>(way, "dK"));
      failures.add(equal(after.dv, before.dv, T(1)), named<T>(way, "dV"));
    });
  }
  CHECK(failures.first() == "");
}

}  // namespace
}  // namespace flashsim
