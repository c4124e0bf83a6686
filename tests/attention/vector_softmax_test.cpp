// What softmax and its gradient do to tiles in vector code, against plain scalar code, for every instruction
// set.
#include "core/attention/vector/tile_kernels.hpp"

#include <vector>

#include "core/base/rounding.hpp"
#include "tests/attention/vector_targets.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::drawn;
using test::element_of;
using test::exponentials_of;
using test::for_every_target;
using test::is_no_weight;
using test::kInfinite;
using test::kNone;
using test::kWidth;
using test::multiply_add;
using test::RandomNumbers;
using test::same;

TEST_CASE("scores are scaled, and masked from each query's own key on") {
  RandomNumbers random(11);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t keys : {1, 2, 5, 33}) {
      INFO(keys << " keys");
      AlignedVector<T> s = drawn<T>(random, keys * kWidth<T>);
      s[0] = kNone<T>;
      AlignedVector<T> expected = s;
      for (T& each : expected) each *= T(0.37);
      kernels.scale(s.data(), keys * kWidth<T>, T(0.37));
      CHECK(same(s, expected));

      AlignedVector<T> visible(static_cast<std::size_t>(kWidth<T>));
      for (std::int64_t q = 0; q < kWidth<T>; ++q) {
        visible[static_cast<std::size_t>(q)] = static_cast<T>(q == 0 ? keys : random.from_to(0, keys));
      }
      for (const T stand_in : {-kInfinite<T>, T(-1e4)}) {
        AlignedVector<T> masked = s;
        kernels.mask(masked.data(), keys, visible.data(), stand_in);
        bool right = true;
        for (std::int64_t c = 0; c < keys; ++c) {
          for (std::int64_t q = 0; q < kWidth<T>; ++q) {
            const auto at = static_cast<std::size_t>(c * kWidth<T> + q);
            const bool hidden = static_cast<T>(c) >= visible[static_cast<std::size_t>(q)];
            right = right && same(masked[at], hidden ? stand_in : s[at]);
          }
        }
        CHECK(right);
      }
    }
  });
}

TEST_CASE("the maximum passes over NaN, and starts from what it was") {
  RandomNumbers random(12);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t keys : {1, 2, 5, 33}) {
      AlignedVector<T> s = drawn<T>(random, keys * kWidth<T>);
      AlignedVector<T> m = drawn<T>(random, kWidth<T>);
      AlignedVector<T> expected = m;
      for (std::int64_t q = 0; q < kWidth<T>; ++q) {
        if (q % 3 == 0) m[static_cast<std::size_t>(q)] = -kInfinite<T>;
        T most = m[static_cast<std::size_t>(q)];
        for (std::int64_t c = 0; c < keys; ++c) {
          T& each = s[static_cast<std::size_t>(c * kWidth<T> + q)];
          if (q % 4 == 0 && c % 2 == 0) each = kNone<T>;
          if (q % 8 == 1) each = -kInfinite<T>;
          if (q % 8 == 2 && c == 0) each = kInfinite<T>;
          if (!std::isnan(each)) most = std::max(most, each);
        }
        expected[static_cast<std::size_t>(q)] = most;
      }
      kernels.maximum(s.data(), keys, m.data());
      INFO(keys << " keys");
      CHECK(same(m, expected));
    }
  });
}

TEST_CASE("weights are summed in order before they are rounded") {
  RandomNumbers random(13);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const NumberType type : {NumberType::fp64, NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
      for (const std::int64_t keys : {1, 2, 5, 33}) {
        AlignedVector<T> s = drawn<T>(random, keys * kWidth<T>, 12);
        AlignedVector<T> subtracted = drawn<T>(random, kWidth<T>, 12);
        s[3] = -kInfinite<T>;
        s[4] = kNone<T>;
        subtracted[5] = 0;
        s[6] = -kInfinite<T>;
        subtracted[6] = kNone<T>;  // the row is NaN, and the masked key has no weight all the same
        std::vector<T> differences;
        for (std::size_t at = 0; at < s.size(); ++at) {
          differences.push_back(s[at] - subtracted[at % static_cast<std::size_t>(kWidth<T>)]);
        }
        std::vector<T> p = exponentials_of(kernels, differences);
        p[6] = T(-0.0);
        AlignedVector<T> sum(subtracted.size()), stored(s.size());
        for (std::size_t at = 0; at < p.size(); ++at) {
          sum[at % static_cast<std::size_t>(kWidth<T>)] += p[at];
          stored[at] = stored_as(type, p[at]);
        }
        AlignedVector<T> got_sum(subtracted.size(), kNone<T>);
        kernels.exponentials(s.data(), keys, subtracted.data(), got_sum.data(), type);
        INFO(keys << " keys, " << name_of(type));
        CHECK(same(s, stored));
        CHECK(same(got_sum, sum));

        AlignedVector<T> rounded = drawn<T>(random, kWidth<T>);
        AlignedVector<T> expected = rounded;
        for (std::size_t at = 0; at < p.size(); ++at) {
          T& each = expected[at % static_cast<std::size_t>(kWidth<T>)];
          each = stored_as(type, each + stored[at]);
        }
        kernels.rounded_sum(s.data(), keys, rounded.data(), type);
        CHECK(same(rounded, expected));
      }
    }
  });
}

TEST_CASE("O is multiplied and divided query by query") {
  RandomNumbers random(14);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t rows : {1, 3, 20}) {
      AlignedVector<T> o = drawn<T>(random, rows * kWidth<T>);
      o[1] = kInfinite<T>;
      o[2] = kNone<T>;
      o[3] = T(-0.0);
      AlignedVector<T> by = drawn<T>(random, kWidth<T>);
      by[0] = 1;
      by[1] = 0;
      by[3] = kNone<T>;
      for (const bool ones : {false, true}) {
        if (ones) std::fill(by.begin(), by.end(), T(1));
        AlignedVector<T> product = o, quotient = o, got_product = o, got_quotient = o;
        for (std::size_t at = 0; at < o.size(); ++at) {
          product[at] *= by[at % by.size()];
          if (!is_no_weight(quotient[at])) quotient[at] /= by[at % by.size()];
        }
        kernels.multiply(got_product.data(), rows, by.data());
        kernels.divide(got_quotient.data(), rows, by.data());
        INFO(rows << " rows");
        CHECK(same(got_product, product));
        CHECK(same(got_quotient, quotient));
      }
    }
  });
}

TEST_CASE("a part of O is added times its query's factor") {
  RandomNumbers random(15);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t rows : {1, 3, 20}) {
      AlignedVector<T> part = drawn<T>(random, rows * kWidth<T>);
      part[1] = kNone<T>;
      AlignedVector<T> factor = drawn<T>(random, kWidth<T>);
      factor[0] = 0;
      AlignedVector<T> got = drawn<T>(random, rows * kWidth<T>);
      AlignedVector<T> expected = got;
      for (std::size_t at = 0; at < part.size(); ++at) {
        expected[at] = multiply_add(kernels, part[at], factor[at % factor.size()], expected[at]);
      }
      kernels.add_multiple(part.data(), rows, factor.data(), got.data());
      INFO(rows << " rows");
      CHECK(same(got, expected));
    }
  });
}

TEST_CASE("the gradient of a score is nothing where it has no weight, whatever stands there") {
  RandomNumbers random(15);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const NumberType type : {NumberType::fp64, NumberType::fp16, NumberType::bf16}) {
      for (const std::int64_t keys : {1, 4, 33}) {
        AlignedVector<T> p = drawn<T>(random, keys * kWidth<T>);
        AlignedVector<T> ds = drawn<T>(random, keys * kWidth<T>);
        AlignedVector<T> delta = drawn<T>(random, kWidth<T>);
        p[0] = T(-0.0);
        ds[0] = kNone<T>;
        p[1] = T(-0.0);
        delta[1] = kInfinite<T>;
        p[2] = T(0);
        ds[2] = kNone<T>;
        AlignedVector<T> expected(ds.size());
        for (std::size_t at = 0; at < p.size(); ++at) {
          const T difference = ds[at] - delta[at % delta.size()];
          expected[at] = is_no_weight(p[at]) ? p[at] : stored_as(type, p[at] * difference);
        }
        kernels.score_gradient(p.data(), ds.data(), keys, delta.data(), type);
        INFO(keys << " keys, " << name_of(type));
        CHECK(same(ds, expected));
        CHECK(std::isnan(ds[2]));
      }
    }
  });
}

TEST_CASE("a dot product leaves out what has no weight") {
  RandomNumbers random(16);
  for_every_target([&](const auto& kernels) {
    using T = decltype(element_of(kernels));
    for (const std::int64_t rows : {1, 2, 5, 40}) {
      AlignedVector<T> a = drawn<T>(random, rows * kWidth<T>);
      AlignedVector<T> b = drawn<T>(random, rows * kWidth<T>);
      a[0] = T(-0.0);
      b[0] = kNone<T>;
      b[1] = kNone<T>;
      AlignedVector<T> sum(static_cast<std::size_t>(kWidth<T>)), got(sum.size(), kNone<T>);
      for (std::size_t at = 0; at < a.size(); ++at) {
        T& each = sum[at % sum.size()];
        if (!is_no_weight(a[at])) each = multiply_add(kernels, a[at], b[at], each);
      }
      kernels.dot(a.data(), b.data(), rows, got.data());
      INFO(rows << " rows");
      CHECK(same(got, sum));
      CHECK(std::isfinite(got[0]));
      CHECK(std::isnan(got[1]));
    }
  });
}

}  // namespace
}  // namespace flashsim
