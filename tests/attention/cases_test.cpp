// Small inputs that have broken attention kernels, in every algorithm, in float and double, at tiles of one,
// two, four and all keys. Where one query has scores S, they are given and are products of Q = [1] and K = S.
#include <limits>

#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::Given;
using test::given_products;
using test::given_scores;
using test::key_tile_ways;
using test::kInfinity;
using test::kNaN;
using test::one_query;
using test::unlike;
using test::unlike_in_both;
using test::Way;
using test::ways;

constexpr Switches kNoRescale{.subtract_max = true, .rescale = false};
constexpr Switches kNoMaximum{.subtract_max = false, .rescale = true};

std::vector<Way> only(std::vector<Way> all, bool (*wanted)(const Way&)) {
  std::erase_if(all, [&](const Way& way) { return !wanted(way); });
  return all;
}
bool divides_weights(const Way& way) { return !test::divides_output(way); }
/// The ways that rescale, with tiles of so many keys.
std::vector<Way> rescaling_ways(std::int64_t key_rows) {
  return test::in_one_part(only(ways({{1, key_rows}}), test::divides_output));
}

TEST_CASE("a row that the mask leaves empty gives O = 0 and L = −∞") {
  Given given = given_products({0, 0, 0, 0, 0}, {0, 0}, {1, 3});
  given.problem.causal = true;
  CHECK(unlike_in_both(key_tile_ways(), given, {0, 0, 0, 1, 2},
                       {-kInfinity, -kInfinity, -kInfinity, 0, std::log(2.0)}) == "");
  // Nothing is read behind the mask: the same with scores that would poison whatever they touch.
  given = given_scores(5, {kNaN, kNaN, kNaN, kInfinity, kInfinity, kNaN, 0, kNaN, 0, 0}, {1, 3});
  given.problem.causal = true;
  CHECK(unlike_in_both(key_tile_ways(), given, {0, 0, 0, 1, 2},
                       {-kInfinity, -kInfinity, -kInfinity, 0, std::log(2.0)}) == "");
}

TEST_CASE("a row whose scores are all −∞ is empty as well") {
  for (const Given& given : one_query({-kInfinity, -kInfinity}, {5, 7})) {
    for (const Switches switches : {Switches{}, kNoMaximum, kNoRescale}) {
      CHECK(unlike_in_both(key_tile_ways(), given, {0}, {-kInfinity}, switches) == "");
    }
  }
}

TEST_CASE("an empty row gives O = 0 whatever its values hold") {
  for (const Given& given : one_query({-kInfinity, -kInfinity}, {kNaN, kInfinity})) {
    CHECK(unlike_in_both(key_tile_ways(), given, {0}, {-kInfinity}) == "");
  }
}

TEST_CASE("whether a NaN value under a weight of zero shows is not for the tiles to decide") {
  for (const Given& given : one_query({-kInfinity, 0}, {kNaN, 1})) {
    const Truth truth = truth_of(given.problem, given.inputs);
    CHECK(unlike_in_both(key_tile_ways(), given, truth.outputs.o.data(), {0}) == "");
  }
}

TEST_CASE("a first tile whose scores are all −∞ doesn't poison the next") {
  for (const Given& given : one_query({-kInfinity, -kInfinity, 10, -kInfinity}, {7, 7, 3, 7})) {
    CHECK(unlike_in_both(key_tile_ways(), given, {3}, {10}) == "");
    // Without the maximum l is e¹⁰: as long as it can be held, nothing changes.
    CHECK(unlike_in_both(key_tile_ways(), given, {3}, {10}, kNoMaximum) == "");
  }
}

TEST_CASE("scores far below a stand-in for −∞ are still above the mask") {
  Given given = given_products({-20000, 0}, {1, 0}, {1, 100});
  given.problem.causal = true;
  CHECK(unlike_in_both(key_tile_ways(), given, {1, 50.5}, {-20000, std::log(2.0)}) == "");
}

TEST_CASE("a row filled with the lowest number is no empty row") {
  constexpr double kLowestFloat = std::numeric_limits<float>::lowest();
  constexpr double kLowestDouble = std::numeric_limits<double>::lowest();
  // In parts L + ln n is L again, so that parts of two keys and of one weigh the same: one part alone.
  const std::vector<Way> all = test::in_one_part(key_tile_ways());
  for (const Given& given : one_query({kLowestFloat, kLowestFloat, kLowestFloat}, {0, 3, 6})) {
    CHECK(unlike_in_both(all, given, {3}, {kLowestFloat}) == "");
  }
  for (const Given& given : one_query({kLowestDouble, kLowestDouble, kLowestDouble}, {0, 3, 6})) {
    CHECK(unlike<double>(all, given, {3}, {kLowestDouble}) == "");
  }
}

TEST_CASE("masked keys and values never leak, whatever they hold") {
  for (const double hidden : {kNaN, kInfinity, -kInfinity}) {
    Given key = given_products({1, 1}, {0, hidden}, {5, 9});
    key.problem.causal = true;
    for (const Way& way : key_tile_ways()) {
      INFO(test::text_of(way) << ", hidden " << hidden);
      const auto single = test::attend_in<float>(way, key);
      const auto twice = test::attend_in<double>(way, key);
      CHECK(single.o.data()[0] == 5);
      CHECK(twice.o.data()[0] == 5);
      CHECK(single.lse.data()[0] == 0);
      CHECK(twice.lse.data()[0] == 0);
    }
    Given value = given_products({1, 1}, {0, 0}, {5, hidden});
    value.problem.causal = true;
    CHECK(unlike_in_both(key_tile_ways(), value, {5, hidden}, {0, std::log(2.0)}) == "");
  }
  Given given = given_products({1, 1}, {0, kNaN}, {5, 9});
  given.problem.causal = true;
  CHECK(unlike_in_both(key_tile_ways(), given, {5, kNaN}, {0, kNaN}) == "");
}

TEST_CASE("without the rescale term rising maxima give too much to the early keys") {
  const double ln3 = std::log(3.0);
  for (const Given& rising : one_query({0, ln3}, {0, 1})) {
    CHECK(unlike_in_both(key_tile_ways(), rising, {0.75}, {std::log(4.0)}) == "");
    CHECK(unlike_in_both(rescaling_ways(1), rising, {0.5}, {std::log(6.0)}, kNoRescale) == "");
    CHECK(test::is_near<double>(std::log(6.0), 1.791759, 1e10));
    // One tile, or no tiles, need no rescaling.
    CHECK(unlike_in_both(rescaling_ways(2), rising, {0.75}, {std::log(4.0)}, kNoRescale) == "");
    CHECK(unlike_in_both(only(key_tile_ways(), divides_weights), rising, {0.75}, {std::log(4.0)},
                         kNoRescale) == "");
  }
  for (const Given& falling : one_query({ln3, 0}, {1, 0})) {
    CHECK(unlike_in_both(test::in_one_part(only(key_tile_ways(), test::is_online)), falling, {0.75},
                         {std::log(4.0)}, kNoRescale) == "");
    // A part has a maximum of its own, and is wrong on whichever side of the largest it lies.
    CHECK(unlike_in_both(only(ways({{1, 1}}), test::combines_parts), falling, {0.5}, {std::log(6.0)},
                         kNoRescale) == "");
  }
}

TEST_CASE("without the maximum the exponentials overflow in float32, and not in float64") {
  const double ln2 = std::log(2.0);
  struct Row {
    double score, divided_last, divided_first, lse;
  };
  for (const Row& row : {Row{87, 2, 2, 87 + ln2}, Row{88, kInfinity, 2, 88 + ln2},
                         Row{89, kNaN, kNaN, kInfinity}, Row{-104, kNaN, kNaN, -kInfinity}}) {
    INFO("scores " << row.score);
    for (const Given& given : one_query({row.score, row.score}, {1, 3})) {
      CHECK(unlike<float>(test::in_one_part(only(key_tile_ways(), test::divides_output)), given,
                          {row.divided_last}, {row.lse}, kNoMaximum) == "");
      CHECK(unlike<float>(only(key_tile_ways(), divides_weights), given, {row.divided_first}, {row.lse},
                          kNoMaximum) == "");
      CHECK(unlike<double>(key_tile_ways(), given, {2}, {row.score + ln2}, kNoMaximum) == "");
      CHECK(unlike_in_both(key_tile_ways(), given, {2}, {row.score + ln2}) == "");
    }
  }
}

TEST_CASE("float32 isn't a shorter type in disguise") {
  const double entry = 1 + std::ldexp(1.0, -11);
  Given given;
  given.problem = {
      .batch = 1, .heads = 1, .kv_heads = 1, .seq = 1, .kv_seq = 1, .head_dim = 64, .causal = false};
  given.inputs.q = given.inputs.k = given.inputs.v = test::matrix(1, 64, std::vector<double>(64, entry));
  for (const Way& way : key_tile_ways()) {
    INFO(test::text_of(way));
    CHECK(std::fabs(double{test::attend_in<float>(way, given).lse.data()[0]} - 8.0078144) <= 1e-6);
    CHECK(std::fabs(test::attend_in<double>(way, given).lse.data()[0] - 8 * entry * entry) <= 1e-14);
    // V comes back as it was: one key has the weight 1.
    CHECK(double{test::attend_in<float>(way, given).o.data()[63]} == entry);
  }
}

TEST_CASE("padding in the last tile counts for nothing") {
  for (const std::int64_t n : {64, 192}) {
    const auto count = static_cast<std::size_t>(n);
    const Given given = given_products(std::vector<double>(count, 0), std::vector<double>(count, 0),
                                       std::vector<double>(count, 1));
    // Each of n equal weights is rounded the same way, which makes n roundings of their sum.
    CHECK(unlike_in_both(ways({{128, 128}, {5, 128}, {128, 7}}), given, std::vector<double>(count, 1),
                         std::vector<double>(count, std::log(static_cast<double>(n))), {},
                         static_cast<double>(n)) == "");
  }
  CHECK(test::is_near<double>(std::log(64.0), 4.158883, 1e10));
  CHECK(test::is_near<double>(std::log(192.0), 5.257495, 1e10));
}

TEST_CASE("a single key gives V and its score, exactly") {
  for (const Given& given : one_query({-3.25}, {0.1})) {
    for (const Way& way : key_tile_ways()) {
      INFO(test::text_of(way));
      const auto single = test::attend_in<float>(way, given);
      const auto twice = test::attend_in<double>(way, given);
      CHECK(single.o.data()[0] == 0.1F);
      CHECK(twice.o.data()[0] == 0.1);
      CHECK(single.lse.data()[0] == -3.25F);
      CHECK(twice.lse.data()[0] == -3.25);
    }
  }
}

TEST_CASE("causal is bottom-right unless top-left is asked for") {
  std::vector<double> v(128);
  for (std::size_t j = 0; j < v.size(); ++j) v[j] = static_cast<double>(j);
  Given three = given_products({0, 0, 0}, std::vector<double>(128, 0), v);
  three.problem.causal = true;
  CHECK(unlike_in_both(key_tile_ways(), three, {62.5, 63, 63.5},
                       {std::log(126.0), std::log(127.0), std::log(128.0)}) == "");
  three.problem.alignment = CausalAlignment::top_left;
  CHECK(unlike_in_both(key_tile_ways(), three, {0, 0.5, 1}, {0, std::log(2.0), std::log(3.0)}) == "");

  Given decode = given_products({0}, std::vector<double>(8, 0), {0, 1, 2, 3, 4, 5, 6, 7});
  decode.problem.causal = true;
  CHECK(unlike_in_both(key_tile_ways(), decode, {3.5}, {std::log(8.0)}) == "");
  decode.problem.alignment = CausalAlignment::top_left;
  CHECK(unlike_in_both(key_tile_ways(), decode, {0}, {0}) == "");
}

TEST_CASE("grouped heads are repeated, not tiled") {
  Given given;
  given.problem = {
      .batch = 1, .heads = 4, .kv_heads = 2, .seq = 1, .kv_seq = 1, .head_dim = 1, .causal = true};
  given.inputs = {
      .q = Tensor4<double>(1, 4, 1, 1), .k = Tensor4<double>(1, 2, 1, 1), .v = Tensor4<double>(1, 2, 1, 1)};
  given.inputs.v.data() = {0, 1};
  CHECK(unlike_in_both(key_tile_ways(), given, {0, 0, 1, 1}, {0, 0, 0, 0}) == "");
  given.problem.heads = 3;
  CHECK(test::message_of(given.problem.validate()) == "3 query heads can't share 2 key/value heads evenly");
}

TEST_CASE("L is a natural logarithm, with the maximum in it") {
  for (const Given& given : one_query({10, 10, 10, 10}, {1, 2, 3, 4})) {
    for (const Switches switches : {Switches{}, kNoMaximum, kNoRescale}) {
      CHECK(unlike_in_both(key_tile_ways(), given, {2.5}, {10 + std::log(4.0)}, switches) == "");
    }
  }
  CHECK(test::is_near<double>(10 + std::log(4.0), 11.386294, 1e9));
}

TEST_CASE("the row sum doesn't stall where a float can hold it") {
  const Given given = given_scores(1, std::vector<double>(4096, 0), std::vector<double>(4096, 1));
  CHECK(unlike_in_both(key_tile_ways(), given, {1}, {std::log(4096.0)}) == "");
}

template <class T>
void check_merge(const Way& way) {
  const Given first = given_scores(1, {0}, {0});
  const Given second = given_scores(1, {0, 0, 0}, {1, 1, 1});
  const Outputs<T> a = test::attend_in<T>(way, first);
  const Outputs<T> b = test::attend_in<T>(way, second);
  const T la = a.lse.data()[0];
  const T lb = b.lse.data()[0];
  // o = Σ e^(L_s − L) o_s with L = ln Σ e^(L_s).
  const T lse = std::log(std::exp(la) + std::exp(lb));
  const T merged = std::exp(la - lse) * a.o.data()[0] + std::exp(lb - lse) * b.o.data()[0];
  CHECK(test::is_near<T>(static_cast<double>(merged), 0.75));
  CHECK(test::is_near<T>(static_cast<double>(lse), std::log(4.0)));
}

TEST_CASE("two splits merge through L") {
  for (const Way& way : key_tile_ways()) {
    INFO(test::text_of(way));
    check_merge<float>(way);
    check_merge<double>(way);
  }
}

}  // namespace
}  // namespace flashsim
