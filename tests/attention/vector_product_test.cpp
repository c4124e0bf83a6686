// The matrix product of the vector code against plain scalar code, for every instruction set.
#include "core/attention/vector/tile_kernels.hpp"

#include <string>

#include "core/base/rounding.hpp"
#include "tests/attention/vector_targets.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::drawn;
using test::element_of;
using test::for_every_target;
using test::is_no_weight;
using test::kInfinite;
using test::kNone;
using test::kWidth;
using test::multiply_add;
using test::RandomNumbers;
using test::same;

/// C = A B of one shape, with room around all three and A in either layout.
template <class T>
struct Matrices {
  Matrices(RandomNumbers& random, std::int64_t of_rows, std::int64_t of_columns, std::int64_t of_depth)
      : rows(of_rows),
        columns(of_columns),
        depth(of_depth),
        a(drawn<T>(random, rows * depth)),
        b(drawn<T>(random, depth * b_stride())),
        c(drawn<T>(random, rows * c_stride())) {}

  [[nodiscard]] std::int64_t b_stride() const { return columns + kWidth<T> / 2; }
  [[nodiscard]] std::int64_t c_stride() const { return columns + kWidth<T>; }
  [[nodiscard]] T& at_a(std::int64_t r, std::int64_t n) { return a[static_cast<std::size_t>(r * depth + n)]; }
  [[nodiscard]] T& at_b(std::int64_t n, std::int64_t x) {
    return b[static_cast<std::size_t>(n * b_stride() + x)];
  }

  /// The product into a copy of C; `along`: A's rows lie side by side.
  template <class Run>
  AlignedVector<T> run(bool along, typename Product<T>::Mode mode, T factor, Run multiply) const {
    const std::int64_t stride = (along ? rows : depth) + 3;
    AlignedVector<T> laid(static_cast<std::size_t>(stride * (along ? depth : rows)), kNone<T>);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < depth; ++n) {
        laid[static_cast<std::size_t>(along ? n * stride + r : r * stride + n)] =
            a[static_cast<std::size_t>(r * depth + n)];
      }
    }
    AlignedVector<T> result = c;
    multiply(Product<T>{.c = result.data(),
                        .c_stride = c_stride(),
                        .a = laid.data(),
                        .a_row = along ? 1 : stride,
                        .a_step = along ? stride : 1,
                        .b = b.data(),
                        .b_stride = b_stride(),
                        .rows = rows,
                        .columns = columns,
                        .depth = depth,
                        .mode = mode,
                        .factor = factor});
    return result;
  }

  /// What that must be: `chain(sum, a, b)` is one step of it.
  template <class Chain>
  AlignedVector<T> expected(const TileKernels<T>& kernels, typename Product<T>::Mode mode, T factor,
                            Chain chain) {
    using Mode = typename Product<T>::Mode;
    AlignedVector<T> result = c;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t x = 0; x < columns; ++x) {
        T& element = result[static_cast<std::size_t>(r * c_stride() + x)];
        T sum = mode == Mode::add ? element : T(0);
        for (std::int64_t n = 0; n < depth; ++n) sum = chain(sum, at_a(r, n), at_b(n, x));
        element = mode == Mode::add      ? sum
                  : mode == Mode::assign ? sum * factor
                                         : multiply_add(kernels, sum, factor, element);
      }
    }
    return result;
  }

  std::int64_t rows, columns, depth;
  AlignedVector<T> a, b, c;
};

TEST_CASE("a product is one chain of multiply-adds an element, in every shape, mode and layout") {
  RandomNumbers random(1);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    std::string wrong;
    for (std::int64_t rows = 1; rows <= 20; ++rows) {
      for (std::int64_t depth = 1; depth <= 20; ++depth) {
        // One, two and three of the widest vectors; of narrower ones more.
        for (std::int64_t columns = kWidth<T> / 2; columns <= 3 * kWidth<T> / 2; columns += kWidth<T> / 2) {
          // Every shape in one of the modes, and in turn.
          const Mode mode =
              std::array{Mode::assign, Mode::add,
                         Mode::add_scaled}[static_cast<std::size_t>((rows + depth + columns) % 3)];
          Matrices<T> m(random, rows, columns, depth);
          const AlignedVector<T> expected = m.expected(
              kernels, mode, T(0.3), [&](T sum, T a, T b) { return multiply_add(kernels, a, b, sum); });
          for (const bool along : {false, true}) {
            if (!same(m.run(along, mode, T(0.3), kernels.product), expected) && wrong.empty()) {
              wrong = fmt::format("{} × {} × {}, mode {}, along {}", rows, columns, depth,
                                  static_cast<int>(mode), along);
            }
          }
        }
      }
    }
    CHECK(wrong == "");
  });
}

TEST_CASE("every mode of a product holds at the shapes where blocks end") {
  RandomNumbers random(2);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    for (const std::int64_t rows : {1, 2, 3, 7, 8, 9, 15, 17}) {
      for (const Mode mode : {Mode::assign, Mode::add, Mode::add_scaled}) {
        for (const bool along : {false, true}) {
          Matrices<T> m(random, rows, kWidth<T> / 2, 5);
          INFO(rows << " rows, mode " << static_cast<int>(mode) << ", along " << along);
          CHECK(same(m.run(along, mode, T(-1.7), kernels.product),
                     m.expected(kernels, mode, T(-1.7),
                                [&](T sum, T a, T b) { return multiply_add(kernels, a, b, sum); })));
        }
      }
    }
  });
}

TEST_CASE("a careful product leaves out what has no weight, and rounds at every addition") {
  RandomNumbers random(3);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    std::string wrong;
    for (const WeightsIn weights : {WeightsIn::neither, WeightsIn::a, WeightsIn::b}) {
      for (const NumberType type : {NumberType::fp64, NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
        for (int i = 0; i < 40; ++i) {
          Matrices<T> m(random, random.from_to(1, 20), kWidth<T> / 2 * random.from_to(1, 3),
                        random.from_to(1, 20));
          const Mode mode = i % 2 == 0 ? Mode::add : Mode::add_scaled;
          const auto chain = [&](T sum, T a, T b) {
            if (is_no_weight(weights == WeightsIn::a ? a : b) && weights != WeightsIn::neither) return sum;
            return stored_as(type, multiply_add(kernels, a, b, sum));
          };
          // Some weights are nothing, and what stands across from one of those is NaN or infinite.
          if (weights == WeightsIn::a) {
            const std::int64_t n = random.from_to(0, m.depth - 1);
            for (std::int64_t r = 0; r < m.rows; ++r) {
              if (r % 3 != 0) m.at_a(r, n) = T(-0.0);
            }
            m.at_b(n, random.from_to(0, m.columns - 1)) = i % 4 == 0 ? kInfinite<T> : kNone<T>;
          }
          if (weights == WeightsIn::b) {
            const std::int64_t n = random.from_to(0, m.depth - 1);
            for (std::int64_t x = 0; x < m.columns; ++x) {
              if (x % 3 != 0) m.at_b(n, x) = T(-0.0);
            }
            m.at_a(random.from_to(0, m.rows - 1), n) = i % 4 == 0 ? kInfinite<T> : kNone<T>;
          }
          const AlignedVector<T> expected = m.expected(kernels, mode, T(0.7), chain);
          for (const bool along : {false, true}) {
            const AlignedVector<T> got = m.run(
                along, mode, T(0.7), [&](const Product<T>& p) { kernels.careful_product(p, weights, type); });
            if (!same(got, expected) && wrong.empty()) {
              wrong = fmt::format("weights {}, {}, run {}", static_cast<int>(weights), name_of(type), i);
            }
          }
        }
      }
    }
    CHECK(wrong == "");
  });
}

TEST_CASE("a weight of +0 is a weight: NaN shows behind it, and not behind −0") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    using Mode = typename Product<T>::Mode;
    RandomNumbers random(4);
    Matrices<T> m(random, 1, kWidth<T> / 2, 1);
    m.at_a(0, 0) = kNone<T>;
    for (std::int64_t x = 0; x < m.columns; ++x) m.at_b(0, x) = x % 2 == 0 ? T(0) : T(-0.0);
    const AlignedVector<T> got = m.run(false, Mode::add, 1, [&](const Product<T>& p) {
      kernels.careful_product(p, WeightsIn::b, NumberType::fp64);
    });
    bool right = true;
    for (std::int64_t x = 0; x < m.columns; ++x) {
      const auto at = static_cast<std::size_t>(x);
      right = right && (x % 2 == 0 ? std::isnan(got[at]) : same(got[at], m.c[at]));
    }
    CHECK(right);
  });
}

}  // namespace
}  // namespace flashsim
