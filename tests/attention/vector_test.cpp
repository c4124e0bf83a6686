// The vector code as a whole: which instruction set runs, and that all give the same bits.
#include "core/attention/vector/tile_kernels.hpp"

#include <string>

#include "tests/attention/vector_targets.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::drawn;
using test::element_of;
using test::for_every_target;
using test::fuses;
using test::kInfinite;
using test::kWidth;
using test::RandomNumbers;
using test::same;

TEST_CASE("the kernels that run here are those of the best target") {
  const auto floats = tile_kernels_of_every_target<float>();
  REQUIRE_FALSE(floats.empty());
  CHECK(floats.front() == &tile_kernels<float>());
  CHECK(tile_kernels_of_every_target<double>().front() == &tile_kernels<double>());
  CHECK(std::string_view(floats.front()->target) == vector_target());
  for (std::size_t i = 1; i < floats.size(); ++i) CHECK(floats[i] != floats[i - 1]);
}

/// What a tile goes through: products, exponentials, sums, rounding.
template <class T>
AlignedVector<T> worked_tile(const TileKernels<T>& kernels) {
  RandomNumbers random(21);
  constexpr std::int64_t kKeys = 24, kDepth = 10;
  AlignedVector<T> k = drawn<T>(random, kKeys * kDepth);
  const AlignedVector<T> q = drawn<T>(random, kDepth * kWidth<T>);
  AlignedVector<T> s(static_cast<std::size_t>(kKeys * kWidth<T>));
  kernels.product({.c = s.data(),
                   .c_stride = kWidth<T>,
                   .a = k.data(),
                   .a_row = kDepth,
                   .a_step = 1,
                   .b = q.data(),
                   .b_stride = kWidth<T>,
                   .rows = kKeys,
                   .columns = kWidth<T>,
                   .depth = kDepth,
                   .mode = Product<T>::Mode::assign,
                   .factor = T(0.3)});
  AlignedVector<T> m(static_cast<std::size_t>(kWidth<T>), -kInfinite<T>), l(m.size());
  kernels.maximum(s.data(), kKeys, m.data());
  kernels.exponentials(s.data(), kKeys, m.data(), l.data(), NumberType::bf16);
  AlignedVector<T> o(q.size());
  kernels.product({.c = o.data(),
                   .c_stride = kWidth<T>,
                   .a = k.data(),
                   .a_row = 1,
                   .a_step = kDepth,
                   .b = s.data(),
                   .b_stride = kWidth<T>,
                   .rows = kDepth,
                   .columns = kWidth<T>,
                   .depth = kKeys});
  kernels.divide(o.data(), kDepth, l.data());
  o.insert(o.end(), l.begin(), l.end());
  return o;
}

TEST_CASE("instruction sets with fused multiply-adds give the same bits") {
  for_every_target([](const auto& kernels) {
    using T = decltype(element_of(kernels));
    const AlignedVector<T> best = worked_tile(tile_kernels<T>());
    const AlignedVector<T> got = worked_tile(kernels);
    if (fuses(kernels) && fuses(tile_kernels<T>())) {
      CHECK(same(got, best));
    } else {
      bool near = true;
      for (std::size_t i = 0; i < got.size(); ++i) near = near && std::fabs(got[i] - best[i]) <= T(0.01);
      CHECK(near);
    }
  });
}

}  // namespace
}  // namespace flashsim
