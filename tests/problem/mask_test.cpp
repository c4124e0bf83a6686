#include "core/problem/mask.hpp"

#include "tests/catch.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

TEST_CASE("every row sees as many keys as the mask lets it, N below, at and above Nkv") {
  Problem p;
  for (const CausalAlignment alignment : {CausalAlignment::bottom_right, CausalAlignment::top_left}) {
    for (const bool causal : {false, true}) {
      for (p.seq = 1; p.seq <= 9; ++p.seq) {
        for (p.kv_seq = 1; p.kv_seq <= 9; ++p.kv_seq) {
          p.causal = causal;
          p.alignment = alignment;
          for (std::int64_t row = 0; row < p.seq; ++row) {
            std::int64_t seen = 0;
            for (std::int64_t key = 0; key < p.kv_seq; ++key) seen += test::visible(p, row, key) ? 1 : 0;
            CAPTURE(causal, name_of(alignment), p.seq, p.kv_seq, row);
            REQUIRE(visible_keys(p, row) == seen);
          }
          for (std::int64_t key = 0; key < p.kv_seq; ++key) {
            std::int64_t first = 0;
            while (first < p.seq && !test::visible(p, first, key)) ++first;
            CAPTURE(causal, name_of(alignment), p.seq, p.kv_seq, key);
            REQUIRE(first_query_seeing(p, key) == first);
          }
        }
      }
    }
  }
}

TEST_CASE("aligned at the bottom right, five queries on two keys leave three rows empty") {
  const Problem p{.seq = 5, .kv_seq = 2, .causal = true, .alignment = CausalAlignment::bottom_right};
  CHECK(visible_keys(p, 0) == 0);
  CHECK(visible_keys(p, 2) == 0);
  CHECK(visible_keys(p, 3) == 1);
  CHECK(visible_keys(p, 4) == 2);
}

TEST_CASE("the alignment decides what one query on eight keys sees") {
  Problem p{.seq = 1, .kv_seq = 8, .causal = true, .alignment = CausalAlignment::bottom_right};
  CHECK(visible_keys(p, 0) == 8);
  p.alignment = CausalAlignment::top_left;
  CHECK(visible_keys(p, 0) == 1);
}

TEST_CASE("rows of the largest dimension don't overflow the mask") {
  const std::int64_t largest = std::int64_t{1} << 40;
  Problem p{.seq = largest, .kv_seq = 1, .causal = true, .alignment = CausalAlignment::bottom_right};
  CHECK(visible_keys(p, largest - 1) == 1);
  CHECK(visible_keys(p, 0) == 0);
  p = {.seq = 1, .kv_seq = largest, .causal = true, .alignment = CausalAlignment::bottom_right};
  CHECK(visible_keys(p, 0) == largest);
}

}  // namespace
}  // namespace flashsim
