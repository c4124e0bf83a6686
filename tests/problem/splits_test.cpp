#include "core/problem/splits.hpp"

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

/// One query on `kv_heads` key/value heads of `tiles` tiles.
SplitChoice chosen(std::int64_t kv_heads, std::int64_t tiles, std::int64_t sms) {
  const Problem problem{.heads = 4 * kv_heads, .kv_heads = kv_heads, .seq = 1, .kv_seq = tiles * 128};
  return choose_splits(problem, {16, 128}, sms, {});
}

TEST_CASE("blocks that fill 80 % of the SMs aren't split") {
  CHECK(chosen(80, 512, 100).splits == 1);
  CHECK(chosen(80, 512, 100).filled());
  CHECK(chosen(79, 512, 100).splits == 5);
  CHECK_FALSE(chosen(79, 512, 100).filled());
}

TEST_CASE("else the fewest parts whose wave efficiency is 85 % of the best are taken") {
  // 8 blocks on 108 SMs, by hand: 12 parts fill 96 of them, 89 %, and 11 fill 81 %.
  const SplitChoice few = chosen(8, 512, 108);
  CHECK(few.splits == 12);
  CHECK(few.most == 108);
  CHECK(few.automatic);
  CHECK(few.efficiency() == Approx(96.0 / 108));
  CHECK(few.best == Approx(1.0));  // 27 parts are two full waves
  // One block: 86 parts of six tiles would be best, and 74 of seven are 85 % of that.
  CHECK(chosen(1, 512, 100).splits == 74);
}

TEST_CASE("a number of parts that only adds empty ones isn't looked at") {
  // 10 tiles: 6 parts have two tiles each, as 5 have, and so on up to 9; 10 have one each.
  const SplitChoice choice = chosen(1, 10, 100);
  CHECK(choice.most == 10);
  CHECK(choice.splits == 10);
  CHECK(choice.best == Approx(0.1));
  CHECK(chosen(1, 9, 8).splits == 5);  // ⌈9/S⌉ = 2 for 5 to 8 parts, of which 5 alone is looked at
}

TEST_CASE("no more than 128 parts, than SMs, or than key tiles are chosen") {
  CHECK(chosen(1, 100000, 1000).most == 128);
  CHECK(chosen(1, 100000, 90).most == 90);
  CHECK(chosen(1, 3, 1000).most == 3);
  CHECK(chosen(1, 1, 1000).splits == 1);
}

TEST_CASE("a number that is asked for is taken, however many key tiles there are") {
  const Problem problem{.heads = 1, .kv_heads = 1, .seq = 1, .kv_seq = 256};
  const SplitChoice choice = choose_splits(problem, {16, 128}, 100, {7});
  CHECK(choice.splits == 7);
  CHECK_FALSE(choice.automatic);
  CHECK(choice.tiles_a_split() == 1);
}

TEST_CASE("parts are a whole number from 1, or auto") {
  CHECK_FALSE(parse_splits("--splits", "auto").value().count);
  CHECK(parse_splits("--splits", "12").value().count == 12);
  for (const char* wrong : {"0", "-1", "nan", "", "1e3", "99999999999999999999"}) {
    const auto parsed = parse_splits("--splits", wrong);
    CAPTURE(wrong);
    CHECK(test::message_of(parsed).starts_with("--splits"));
    CHECK(test::hint_of(parsed) == "a number of parts, or auto");
  }
}

}  // namespace
}  // namespace flashsim
