// What must hold for any input: random shapes, masks, heads and tiles, in float and double.
#include <algorithm>
#include <numeric>

#include "core/problem/mask.hpp"
#include "tests/attention/failures.hpp"
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::attend_in;
using test::drawn_inputs;
using test::Failures;
using test::Given;
using test::given_scores;
using test::in_every_way;
using test::kInfinity;
using test::kNaN;
using test::misses_of;
using test::named;
using test::RandomNumbers;
using test::same_bits;
using test::several_ways;
using test::Way;
using test::ways;

constexpr Switches kNoRescale{.subtract_max = true, .rescale = false};
constexpr Switches kNoMaximum{.subtract_max = false, .rescale = true};

/// Scores [N, Nkv] in one head, V [Nkv, d]: multiples of 1/64.
Given exact_scores(RandomNumbers& random, std::int64_t n, std::int64_t nkv, std::int64_t d,
                   double magnitude) {
  Given given;
  given.problem = {
      .batch = 1, .heads = 1, .kv_heads = 1, .seq = n, .kv_seq = nkv, .head_dim = d, .causal = false};
  given.inputs = {.v = Tensor4<double>(1, 1, nkv, d), .scores = Tensor4<double>(1, 1, n, nkv)};
  for (double& value : given.inputs.v.data()) value = random.next_exact(4);
  for (double& value : given.inputs.scores.data()) value = random.next_exact(magnitude);
  return given;
}

TEST_CASE("whatever the shape and the tiles, the result is within rounding of the truth") {
  test::RandomShapes shapes(2205);
  RandomNumbers random(14135);
  Failures failures;
  for (int i = 0; i < 60; ++i) {
    test::Shape shape = shapes.next(40);
    if (i % 3 == 0) shape.problem.scale = random.next(2);
    const Given given{shape.problem, drawn_inputs(shape.problem, random, 2)};
    in_every_way(ways({shape.tiling, {128, 128}}), [&](auto type, const Way& way) {
      failures.add(misses_of<decltype(type)>(way, given).none(),
                   named<decltype(type)>(way, test::text_of(shape)));
    });
  }
  CHECK(failures.runs() == 240 * std::int64_t{kAlgorithms.size()});
  CHECK(failures.first() == "");
}

TEST_CASE("one head in the smallest tilings and the largest gives the same within rounding") {
  RandomNumbers random(7);
  Failures failures;
  for (const bool causal : {false, true}) {
    Problem problem{
        .batch = 1, .heads = 1, .kv_heads = 1, .seq = 13, .kv_seq = 17, .head_dim = 5, .causal = causal};
    const Given given{problem, drawn_inputs(problem, random, 3)};
    for (std::int64_t br = 1; br <= 14; ++br) {
      for (std::int64_t bc = 1; bc <= 18; ++bc) {
        in_every_way(ways({{br, bc}}), [&](auto type, const Way& way) {
          failures.add(misses_of<decltype(type)>(way, given).none(), named<decltype(type)>(way, "13 × 17"));
        });
      }
    }
  }
  CHECK(failures.runs() == 2 * 14 * 18 * 2 * std::int64_t{kAlgorithms.size()});
  CHECK(failures.first() == "");
}

TEST_CASE("adding a constant to a row's scores leaves its output and adds the constant to L") {
  RandomNumbers random(31);
  Failures failures;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t n = random.from_to(1, 9);
    const std::int64_t nkv = random.from_to(1, 30);
    const Given plain = exact_scores(random, n, nkv, 3, 8);
    Given shifted = plain;
    std::vector<double> constants;
    for (std::int64_t row = 0; row < n; ++row) {
      constants.push_back(random.next_exact(1000));
      for (std::int64_t key = 0; key < nkv; ++key)
        shifted.inputs.scores.matrix(0, 0)(row, key) += constants.back();
    }
    // The L of a part is rounded, and rounded anew where it is shifted.
    in_every_way(test::in_one_part(several_ways()), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Outputs<T> before = attend_in<T>(way, plain);
      const Outputs<T> after = attend_in<T>(way, shifted);
      // The shifted scores are exact in both types, and so are their differences from the maximum.
      failures.add(same_bits(before.o, after.o), named<T>(way, "O"));
      failures.add(misses_of<T>(way, shifted).none(), named<T>(way, "shifted"));
      for (std::size_t row = 0; row < constants.size(); ++row) {
        const double moved = double{after.lse.data()[row]} - double{before.lse.data()[row]};
        const double rounding = 4 * std::numeric_limits<T>::epsilon() * (20 + std::fabs(constants[row]));
        failures.add(std::fabs(moved - constants[row]) <= rounding, named<T>(way, "L"));
      }
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("the order of the keys makes no difference beyond rounding") {
  RandomNumbers random(99);
  Failures failures;
  int moved = 0;
  for (int i = 0; i < 12; ++i) {
    Problem problem{.batch = 1,
                    .heads = 1,
                    .kv_heads = 1,
                    .seq = random.from_to(1, 12),
                    .kv_seq = random.from_to(2, 40),
                    .head_dim = random.from_to(1, 9),
                    .causal = false};
    const Given given{problem, drawn_inputs(problem, random, 2)};
    std::vector<std::int64_t> order(static_cast<std::size_t>(problem.kv_seq));
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t last = problem.kv_seq - 1; last > 0; --last) {
      std::swap(order[static_cast<std::size_t>(last)],
                order[static_cast<std::size_t>(random.from_to(0, last))]);
    }
    Given permuted = given;
    for (std::int64_t key = 0; key < problem.kv_seq; ++key) {
      const std::int64_t from = order[static_cast<std::size_t>(key)];
      for (std::int64_t x = 0; x < problem.head_dim; ++x) {
        permuted.inputs.k.matrix(0, 0)(key, x) = given.inputs.k.matrix(0, 0)(from, x);
        permuted.inputs.v.matrix(0, 0)(key, x) = given.inputs.v.matrix(0, 0)(from, x);
      }
    }
    in_every_way(several_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Truth truth = truth_of(problem, converted<T>(given.inputs));
      Problem whole = problem;
      whole.storage = test::number_type<T>();
      const Tolerance tolerance = tolerance_of<T>(whole, way.method(), truth.magnitudes, false);
      const Outputs<T> got = attend_in<T>(way, permuted);
      failures.add(compare(got.o, truth.outputs.o).agrees_within(tolerance.output.value()),
                   named<T>(way, "O"));
      failures.add(compare(got.lse, truth.outputs.lse).agrees_within(tolerance.lse.value()),
                   named<T>(way, "L"));
      moved += same_bits(got, attend_in<T>(way, given)) ? 0 : 1;
    });
  }
  CHECK(failures.first() == "");
  CHECK(moved > 100);  // the keys were added in another order indeed
}

/// The tensors of one query head and its key/value head, as a problem of their own.
Given one_head(const Given& given, std::int64_t b, std::int64_t h) {
  const auto cut = [](const Tensor4<double>& t, std::int64_t batch, std::int64_t head) {
    Tensor4<double> one(1, 1, t.rows(), t.columns());
    std::copy_n(t.matrix(batch, head).data, one.data().size(), one.data().begin());
    return one;
  };
  Given one = given;
  one.problem.batch = one.problem.heads = one.problem.kv_heads = 1;
  const std::int64_t kv = h * given.problem.kv_heads / given.problem.heads;
  one.inputs = {
      .q = cut(given.inputs.q, b, h), .k = cut(given.inputs.k, b, kv), .v = cut(given.inputs.v, b, kv)};
  return one;
}

TEST_CASE("a head alone equals the head among others, bit for bit, and a run repeated equals itself") {
  test::RandomShapes shapes(11);
  RandomNumbers random(12);
  Failures failures;
  for (int i = 0; i < 25; ++i) {
    const test::Shape shape = shapes.next(20);
    const Given given{shape.problem, drawn_inputs(shape.problem, random, 2)};
    in_every_way(ways({shape.tiling}), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Outputs<T> all = attend_in<T>(way, given);
      failures.add(same_bits(all, attend_in<T>(way, given)), named<T>(way, "repeated"));
      for (std::int64_t b = 0; b < shape.problem.batch; ++b) {
        for (std::int64_t h = 0; h < shape.problem.heads; ++h) {
          const Outputs<T> one = attend_in<T>(way, one_head(given, b, h));
          failures.add(same_bits(one.o.data().data(), all.o.matrix(b, h).data, one.o.data().size()) &&
                           same_bits(one.lse.data().data(), all.lse.matrix(b, h).data, one.lse.data().size()),
                       named<T>(way, fmt::format("head {} of {}", h, test::text_of(shape))));
        }
      }
    });
  }
  CHECK(failures.runs() > 1000);
  CHECK(failures.first() == "");
}

TEST_CASE("grouped heads equal repeated heads, bit for bit") {
  RandomNumbers random(5);
  Failures failures;
  for (const auto& [heads, kv_heads] : {std::pair<std::int64_t, std::int64_t>{6, 2}, {6, 3}, {4, 1}}) {
    Problem problem{.batch = 2, .heads = heads, .kv_heads = kv_heads, .seq = 9, .kv_seq = 14, .head_dim = 6};
    const Given grouped{problem, drawn_inputs(problem, random, 2)};
    Given repeated = grouped;
    repeated.problem.kv_heads = heads;
    for (auto tensor : {&Inputs<double>::k, &Inputs<double>::v}) {
      Tensor4<double>& all = repeated.inputs.*tensor;
      all = Tensor4<double>(2, heads, 14, 6);
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t group = h / (heads / kv_heads);
          std::copy_n((grouped.inputs.*tensor).matrix(b, group).data, 14 * 6, all.matrix(b, h).data);
        }
      }
    }
    in_every_way(several_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      failures.add(same_bits(attend_in<T>(way, grouped), attend_in<T>(way, repeated)),
                   named<T>(way, "grouped"));
    });
  }
  CHECK(failures.first() == "");
}

/// Every element of the row is NaN in `got`, and every other row has the bits of `before`.
template <class T>
bool poisons_only(const Outputs<T>& got, const Outputs<T>& before, std::int64_t row) {
  bool right = true;
  for (std::int64_t r = 0; r < got.o.rows(); ++r) {
    const auto o = got.o.matrix(0, 0);
    const auto lse = got.lse.matrix(0, 0);
    const auto width = static_cast<std::size_t>(o.columns);
    if (r == row) {
      right = right && std::all_of(o.row(r), o.row(r) + width, [](T value) { return std::isnan(value); }) &&
              std::isnan(lse(r, 0));
    } else {
      right = right && same_bits(o.row(r), before.o.matrix(0, 0).row(r), width) &&
              same_bits(lse.row(r), before.lse.matrix(0, 0).row(r), 1) && !std::isnan(lse(r, 0));
    }
  }
  return right;
}

TEST_CASE("a visible score of NaN or +∞ makes its whole row NaN, and no other") {
  RandomNumbers random(71);
  Failures failures;
  for (int i = 0; i < 40; ++i) {
    Given given = exact_scores(random, random.from_to(1, 9), random.from_to(1, 14), 2, 4);
    given.problem.causal = i % 2 == 1;
    const std::int64_t row = given.problem.seq - 1;
    const std::int64_t key = random.from_to(0, given.problem.kv_seq - 1);  // the last row sees them all
    if (i % 5 == 0) {
      for (std::int64_t k = 0; k < given.problem.kv_seq; ++k)
        given.inputs.scores.matrix(0, 0)(row, k) = -kInfinity;
    }
    Given poisoned = given;
    for (const double poison : {kNaN, kInfinity}) {
      poisoned.inputs.scores.matrix(0, 0)(row, key) = poison;
      in_every_way(several_ways(), [&](auto type, const Way& way) {
        using T = decltype(type);
        failures.add(poisons_only(attend_in<T>(way, poisoned), attend_in<T>(way, given), row),
                     named<T>(way, fmt::format("{} at key {} of {}", poison, key, given.problem.kv_seq)));
      });
      const Truth truth = truth_of(poisoned.problem, poisoned.inputs);
      failures.add(poisons_only(truth.outputs, truth_of(given.problem, given.inputs).outputs, row),
                   "the truth");
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("what stands behind the mask never shows, in scores, keys or values") {
  RandomNumbers random(23);
  Failures failures;
  for (const CausalAlignment alignment : {CausalAlignment::bottom_right, CausalAlignment::top_left}) {
    for (const auto& [n, nkv] : {std::pair<std::int64_t, std::int64_t>{7, 7}, {5, 11}, {11, 5}}) {
      Given given = exact_scores(random, n, nkv, 2, 4);
      given.problem.causal = true;
      given.problem.alignment = alignment;
      for (const double hidden : {kNaN, kInfinity, -kInfinity, 1e30}) {
        Given replaced = given;
        for (std::int64_t row = 0; row < n; ++row) {
          for (std::int64_t key = 0; key < nkv; ++key) {
            if (!test::visible(given.problem, row, key))
              replaced.inputs.scores.matrix(0, 0)(row, key) = hidden;
          }
        }
        in_every_way(several_ways(), [&](auto type, const Way& way) {
          using T = decltype(type);
          failures.add(same_bits(attend_in<T>(way, replaced), attend_in<T>(way, given)),
                       named<T>(way, "scores"));
        });
      }
      // A key and its value: rows that see it may change, and no other.
      Given products{given.problem, drawn_inputs(given.problem, random, 2)};
      for (std::int64_t key = 0; key < nkv; ++key) {
        Given replaced = products;
        for (std::int64_t x = 0; x < 2; ++x) {
          replaced.inputs.k.matrix(0, 0)(key, x) = kNaN;
          replaced.inputs.v.matrix(0, 0)(key, x) = kNaN;
        }
        in_every_way(several_ways(), [&](auto type, const Way& way) {
          using T = decltype(type);
          const Outputs<T> before = attend_in<T>(way, products);
          const Outputs<T> after = attend_in<T>(way, replaced);
          for (std::int64_t row = 0; row < n; ++row) {
            const auto is = after.o.matrix(0, 0);
            const bool nan =
                std::isnan(is(row, 0)) && std::isnan(is(row, 1)) && std::isnan(after.lse.data()[row]);
            const bool same = same_bits(is.row(row), before.o.matrix(0, 0).row(row), 2) &&
                              same_bits(&after.lse.data()[row], &before.lse.data()[row], 1);
            failures.add(test::visible(given.problem, row, key) ? nan : same && !nan,
                         named<T>(way, fmt::format("row {}, key {} of {} × {}", row, key, n, nkv)));
          }
        });
      }
    }
  }
  CHECK(failures.first() == "");
}

TEST_CASE("more queries than keys leave the first rows empty, and those alone") {
  RandomNumbers random(3);
  Failures failures;
  for (const std::int64_t nkv : {1, 2, 5, 11}) {
    Problem problem{.batch = 1, .heads = 2, .kv_heads = 1, .seq = 12, .kv_seq = nkv, .head_dim = 3};
    const Given given{problem, drawn_inputs(problem, random, 2)};
    in_every_way(several_ways(), [&](auto type, const Way& way) {
      using T = decltype(type);
      const Outputs<T> got = attend_in<T>(way, given);
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t row = 0; row < 12; ++row) {
          const T* o = got.o.matrix(0, h).row(row);
          const T lse = got.lse.matrix(0, h)(row, 0);
          const bool empty =
              o[0] == 0 && o[1] == 0 && o[2] == 0 && lse == -std::numeric_limits<T>::infinity();
          failures.add(row < 12 - nkv ? empty : !empty && std::isfinite(lse),
                       named<T>(way, fmt::format("row {}", row)));
        }
      }
    });
  }
  CHECK(failures.first() == "");
}

TEST_CASE("without rescaling the result is right where no tile raises the maximum of the first") {
  RandomNumbers random(41);
  Failures failures;
  for (int i = 0; i < 12; ++i) {
    Given given = exact_scores(random, 4, 24, 3, 6);
    for (std::int64_t row = 0; row < 4; ++row) {
      // The row's maximum moves to the front, and stands in the first tile of any width.
      double* scores = given.inputs.scores.matrix(0, 0).row(row);
      std::swap(*std::max_element(scores, scores + 24), scores[0]);
    }
    in_every_way(test::in_one_part(several_ways()), [&](auto type, const Way& way) {
      if (test::combines_parts(way)) return;
      failures.add(misses_of<decltype(type)>(way, given, kNoRescale).none(),
                   named<decltype(type)>(way, "falling"));
    });
  }
  CHECK(failures.first() == "");
}

/// One row without rescaling, spelled out: key j has the weight exp(s_j − m), m the maximum once its tile
/// is done, or, where tiles don't know of each other, that of its tile.
struct Unrescaled {
  double o = 0, lse = 0;
};
Unrescaled unrescaled_row(const std::vector<double>& scores, const std::vector<double>& v, std::size_t width,
                          bool running) {
  double m = -kInfinity, whole = -kInfinity, sum = 0, l = 0;
  for (std::size_t begin = 0; begin < scores.size(); begin += width) {
    const std::size_t end = std::min(begin + width, scores.size());
    const double own = *std::max_element(scores.begin() + static_cast<std::ptrdiff_t>(begin),
                                         scores.begin() + static_cast<std::ptrdiff_t>(end));
    m = running ? std::max(m, own) : own;
    whole = std::max(whole, own);
    for (std::size_t j = begin; j < end; ++j) {
      l += std::exp(scores[j] - m);
      sum += std::exp(scores[j] - m) * v[j];
    }
  }
  return {sum / l, whole + std::log(l)};
}

TEST_CASE(
    "without rescaling an algorithm that rescales gives what leaving r out gives, and the others the truth") {
  RandomNumbers random(43);
  Failures failures;
  int wrong = 0;
  for (int i = 0; i < 20; ++i) {
    const Given given = exact_scores(random, 1, random.from_to(2, 30), 1, 4);
    const std::vector<double>& scores = given.inputs.scores.data();
    const std::vector<double>& v = given.inputs.v.data();
    for (const std::int64_t width : {1, 2, 3, 7, 64}) {
      const Unrescaled tiles = unrescaled_row(scores, v, static_cast<std::size_t>(width), true);
      const Unrescaled parts = unrescaled_row(scores, v, static_cast<std::size_t>(width), false);
      in_every_way(test::in_one_part(ways({{2, width}})), [&](auto type, const Way& way) {
        using T = decltype(type);
        const test::Misses misses = misses_of<T>(way, given, kNoRescale);
        if (!test::divides_output(way))
          return failures.add(misses.none(), named<T>(way, "nothing to leave out"));
        const Unrescaled& expected = test::combines_parts(way) ? parts : tiles;
        const Outputs<T> got = attend_in<T>(way, given, kNoRescale);
        failures.add(test::unlike(got, {expected.o}, {expected.lse}, 200) == "", named<T>(way, "tiled"));
        wrong += misses.none() ? 0 : 1;
      });
    }
  }
  CHECK(failures.first() == "");
  CHECK(wrong > 100);
}

TEST_CASE("without the maximum the result is the same within rounding as long as nothing overflows") {
  test::RandomShapes shapes(8);
  RandomNumbers random(9);
  Failures failures;
  for (int i = 0; i < 30; ++i) {
    const test::Shape shape = shapes.next(30);
    const Given given{shape.problem, drawn_inputs(shape.problem, random, 1.5)};
    in_every_way(ways({shape.tiling}), [&](auto type, const Way& way) {
      failures.add(misses_of<decltype(type)>(way, given, kNoMaximum).none(),
                   named<decltype(type)>(way, test::text_of(shape)));
    });
  }
  CHECK(failures.first() == "");
}

/// Numbers the heads and counts the steps that it is told of.
class Watcher : public StepObserver {
 public:
  void begin_head(std::int64_t batch, std::int64_t head) override { heads.emplace_back(batch, head); }
  void executed(const Step&, const ChipValues&) override { ++steps; }
  std::vector<std::pair<std::int64_t, std::int64_t>> heads;
  int steps = 0;
};

TEST_CASE("an observer is told every head in order, and changes nothing") {
  RandomNumbers random(1);
  const Problem problem{.batch = 2, .heads = 2, .kv_heads = 1, .seq = 5, .kv_seq = 6, .head_dim = 3};
  const Inputs<double> inputs = drawn_inputs(problem, random, 2);
  for (const Way& way : several_ways()) {
    INFO(text_of(way));
    Watcher watcher;
    const auto watched = attend<double>(problem, way.method(), {}, inputs, {.observer = &watcher});
    CHECK(same_bits(watched, attend<double>(problem, way.method(), {}, inputs)));
    std::vector<std::pair<std::int64_t, std::int64_t>> heads{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    // The heads of a group that are packed are one walk.
    if (way.algorithm == Algorithm::split_kv) heads = {{0, 0}, {1, 0}};
    CHECK(watcher.heads == heads);
    CHECK(watcher.steps > 0);
    CHECK(watcher.steps % static_cast<int>(heads.size()) == 0);
  }
}

}  // namespace
}  // namespace flashsim
