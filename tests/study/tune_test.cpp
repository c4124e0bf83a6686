// The best tile is the best of all that fit, told by trying them all; bounds and where an order begins to
// pay.
#include "core/study/tune.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/account/prediction.hpp"
#include "core/study/report_json.hpp"
#include "core/study/tile_search.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

TuneReport tuned(const TuneRequest& request) {
  auto report = make_tuning(request);
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

Bytes hbm(Algorithm algorithm, const Problem& problem, Tiling tiling) {
  return predict(algorithm, problem, tiling).tally.hbm_total().total();
}

/// Multiples of `multiple`, and the whole.
std::vector<std::int64_t> sizes(std::int64_t multiple, std::int64_t whole) {
  std::vector<std::int64_t> all;
  for (std::int64_t size = multiple; size < whole; size += multiple) all.push_back(size);
  all.push_back(whole);
  return all;
}

/// Every candidate, by trying them all.
std::vector<TileChoice> every_tile(Algorithm algorithm, const Problem& p, std::int64_t multiple) {
  std::vector<TileChoice> all;
  for (const std::int64_t rows : sizes(multiple, p.seq)) {
    for (const std::int64_t keys : sizes(multiple, p.kv_seq)) {
      const Tiling tiling{rows, keys};
      all.push_back({tiling, tile_footprint(p, tiling), hbm(algorithm, p, tiling)});
    }
  }
  return all;
}

TEST_CASE("the front holds the candidates that no other beats, and ends in the best") {
  test::RandomShapes shapes(7);
  for (int round = 0; round < 60; ++round) {
    const Problem p = shapes.next(40).problem;
    const std::int64_t multiple = 1 + round % 5;
    const Bytes sram((1 + round % 7) * 12 * p.head_dim * size_of(p.storage));
    for (const Algorithm algorithm : kTunedOrders) {
      const TileSearch search(algorithm, p, multiple);
      std::vector<TileChoice> fitting;
      for (const TileChoice& tile : every_tile(algorithm, p, multiple)) {
        if (tile.footprint <= sram) fitting.push_back(tile);
      }
      INFO(shape_text(p) << " multiples of " << multiple << " in " << sram.value());
      CHECK(search.candidates(sram) == static_cast<std::int64_t>(fitting.size()));
      const auto front = search.front(sram);
      CHECK(front.empty() == fitting.empty());
      for (std::size_t i = 1; i < front.size(); ++i) {
        CHECK(front[i].footprint > front[i - 1].footprint);
        CHECK(front[i].hbm < front[i - 1].hbm);
      }
      for (const TileChoice& tile : fitting) {
        const bool matched = std::any_of(front.begin(), front.end(), [&](const TileChoice& best) {
          return best.footprint <= tile.footprint && best.hbm <= tile.hbm;
        });
        CHECK(matched);
      }
      for (const TileChoice& tile : front) {
        CHECK(tile.hbm == hbm(algorithm, p, tile.tiling));
        CHECK(tile.footprint == tile_footprint(p, tile.tiling));
      }
    }
  }
}

TEST_CASE("the smallest SRAM that pays is the smallest of all candidates that do") {
  test::RandomShapes shapes(11);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    const Problem p = shapes.next(40).problem;
    const Bytes standard = hbm(Algorithm::standard, p, {});
    for (const Algorithm algorithm : kTunedOrders) {
      std::optional<Bytes> smallest;
      for (const TileChoice& tile : every_tile(algorithm, p, 2)) {
        if (tile.hbm <= standard && (!smallest || tile.footprint < *smallest)) smallest = tile.footprint;
      }
      const auto searched = TileSearch(algorithm, p, 2).smallest_footprint(standard);
      INFO(shape_text(p));
      CHECK(searched.has_value() == smallest.has_value());
      if (searched && smallest) CHECK(searched->footprint == *smallest);
      if (searched) CHECK(searched->hbm <= standard);
      found += searched ? 1 : 0;
    }
  }
  CHECK(found > 10);
}

TEST_CASE("the smallest outer tile that pays is one below which none does") {
  const TuneReport report = tuned({});
  for (const OrderTuning& order : report.orders) {
    REQUIRE(order.payoff.smallest_tile);
    const Tiling smallest = order.payoff.smallest_tile->tiling;
    CHECK(hbm(order.algorithm, report.problem, smallest) <= report.standard);
    Tiling smaller = smallest;
    std::int64_t& outer = order.algorithm == Algorithm::flash1 ? smaller.key_rows : smaller.query_rows;
    CHECK(outer > 1);
    while (--outer > 0) CHECK(hbm(order.algorithm, report.problem, smaller) > report.standard);
  }
}

TEST_CASE("without a mask the exact payoff is near the leading order's") {
  const TuneReport report = tuned({.account = {.seq = 65536, .dtype = NumberType::fp32, .causal = false}});
  // Statistics of the size of elements, as the leading order has them.
  for (const OrderTuning& order : report.orders) {
    REQUIRE(order.payoff.smallest_tile);
    const Tiling tile = order.payoff.smallest_tile->tiling;
    const auto rows =
        static_cast<double>(order.algorithm == Algorithm::flash1 ? tile.key_rows : tile.query_rows);
    CHECK(std::abs(rows - order.payoff.leading_order_rows) <= 1);
  }
  CHECK(report.orders[0].payoff.leading_order_rows == 97);
  CHECK(report.orders[1].payoff.leading_order_rows == 64);
}

TEST_CASE("the best tile beats the paper's rule and the default choice where those are candidates") {
  for (const bool causal : {false, true}) {
    const TuneReport report = tuned({.account = {.causal = causal, .shared_memory = Bytes(192 * 1024)}});
    for (const OrderTuning& order : report.orders) {
      CHECK(order.best.hbm <= order.chosen.hbm);
      CHECK(order.best.footprint <= report.sram);
      CHECK(order.best.hbm >= report.compulsory);
      CHECK(tiling_text(order.paper.tiling) == "128×192");
      CHECK(order.best.hbm <= order.paper.hbm);
    }
  }
}

TEST_CASE("tiles as long as the sequences move the compulsory bytes and no more") {
  const TuneReport report =
      tuned({.account = {.seq = 100, .kv_seq = 70, .causal = false, .shared_memory = Bytes(1 << 20)}});
  const OrderTuning& flash2 = report.orders[1];
  CHECK(flash2.best.hbm == report.compulsory);
  CHECK(flash2.best.tiling.query_rows == 100);
  CHECK(flash2.best.tiling.key_rows == 16);
}

TEST_CASE("the compulsory bytes count a shared key/value head once") {
  const Problem p{.batch = 2, .heads = 4, .kv_heads = 2, .seq = 10, .kv_seq = 20, .head_dim = 8};
  CHECK(compulsory_bytes(p) == Bytes(2 * (4 * 10 * 8 * 2 * 2 + 2 * 2 * 20 * 8 * 2 + 4 * 10 * 4)));
}

TEST_CASE("the theory's order changes at M = d² elements, where both sides agree") {
  Problem p;
  p.head_dim = 64;
  const TheoryBound at = theory_bound(p, Bytes(64 * 64 * 2));
  CHECK(at.elements == 4096);
  CHECK(at.large);
  CHECK(at.bytes == 32.0 * 8192 * 8192 * 2);  // N²·d²/M with M = d²
  const TheoryBound below = theory_bound(p, Bytes(64 * 64 * 2 - 2));
  CHECK_FALSE(below.large);
  CHECK(std::abs(below.bytes / (32.0 * 8192 * 8192 * 64 / std::sqrt(4095.0) * 2) - 1) < 1e-12);
  CHECK(theory_bound(p, Bytes(64 * 64 * 8)).bytes == at.bytes / 4);
}

TEST_CASE("the curve falls with SRAM, meets the best tile at its own size, and covers it") {
  for (const std::int64_t sram : {std::int64_t{24576}, std::int64_t{1} << 17, std::int64_t{1} << 21}) {
    const TuneReport report = tuned({.account = {.shared_memory = Bytes(sram)}});
    CHECK(report.curve.front().sram == Bytes(1024));
    CHECK(report.curve.back().sram >= Bytes(sram));
    for (std::size_t o = 0; o < report.orders.size(); ++o) {
      std::optional<Bytes> before;
      for (const TunedSize& size : report.curve) {
        if (before && size.best[o]) CHECK(*size.best[o] <= *before);
        if (size.best[o]) before = size.best[o];
        if (size.sram == report.sram) CHECK(size.best[o] == report.orders[o].best.hbm);
      }
    }
  }
}

TEST_CASE("N = 1, and sequences shorter than the multiple, have a tile") {
  const TuneReport one = tuned({.account = {.seq = 1}});
  for (const OrderTuning& order : one.orders) {
    CHECK(order.candidates == 1);
    CHECK(tiling_text(order.best.tiling) == "1×1");
  }
  const TuneReport decode = tuned({.account = {.seq = 1, .kv_seq = 8192}});
  CHECK(decode.orders[1].best.tiling.query_rows == 1);
}

TEST_CASE("what can't be tuned is one line") {
  CHECK(message_of(make_tuning({.account = {.shared_memory = Bytes(100)}})) ==
        "no tiles fit: one row each of Q, K and V needs 768 B of shared memory, and the SRAM is 100 B");
  CHECK(message_of(make_tuning({.account = {.shared_memory = Bytes(4096)}})) ==
        "no tile of multiples of 16 fits 4096 B: 16×16 needs 12288 B");
  CHECK(hint_of(make_tuning({.account = {.shared_memory = Bytes(4096)}})) == "--multiple-of 4");
  CHECK(make_tuning({.account = {.shared_memory = Bytes(4096)}, .multiple_of = 4}).ok());
  CHECK(message_of(make_tuning({.account = {.seq = std::int64_t{1} << 40}})) ==
        "a count of standard leaves 64 bits (B 1 · H 32 · N 1099511627776 · d 128)");
  CHECK(message_of(make_tuning({.account = {.shared_memory = Bytes(1 << 20)}, .multiple_of = 1})) ==
        "more than 250 000 tiles of multiples of 1 fit 1048576 B");
  CHECK(message_of(make_tuning({.account = {.heads = 3, .kv_heads = 2}})) ==
        "3 query heads can't share 2 key/value heads evenly");
}

TEST_CASE("where nothing pays, that is said") {
  // Two keys a query: standard's four N·Nkv elements are fewer than the statistics of flash1 alone.
  const TuneReport report = tuned({.account = {.seq = 64, .kv_seq = 2, .causal = false}});
  CHECK_FALSE(report.orders[0].payoff.smallest_tile);
  CHECK_FALSE(report.orders[0].payoff.smallest_sram);
  CHECK(report.orders[0].payoff.searched_rows == 2);
}

TEST_CASE("a tuning's JSON repeats it") {
  const TuneReport report = tuned(
      {.account = {.seq = 300, .dtype = NumberType::bf16, .shared_memory = Bytes(65536)}, .multiple_of = 8});
  const std::string text = json_text(tune_json(report));
  const auto again = read_tune_request(text, "'t.json'");
  REQUIRE(message_of(again) == kNoError);
  CHECK(json_text(tune_json(tuned(*again))) == text);
  CHECK(message_of(read_tune_request(R"({"input": {"tile_q": 64}})", "'t.json'")) ==
        "'t.json': input.tile_q is what tune looks for");
}

}  // namespace
}  // namespace flashsim
