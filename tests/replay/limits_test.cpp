// What a replay refuses, and where the recorder stops.
#include <cmath>

#include <fmt/format.h>

#include "core/study/replay.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/replay/frame_lookup.hpp"
#include "tests/replay/replays.hpp"

namespace flashsim {
namespace {

using test::kNoError;
using test::message_of;
using test::Numbers;

TEST_CASE("a row that isn't there is refused") {
  CHECK(message_of(make_replay({.scenario = "three-token", .row = 3})) ==
        "--row must be a whole number from 0 to 2, not 3");
  CHECK(message_of(make_replay({.scenario = "three-token", .row = -1})) ==
        "--row must be a whole number from 0 to 2, not -1");
  CHECK(message_of(make_replay({.scenario = "max-changes", .row = 1})) ==
        "--row must be a whole number from 0 to 0, not 1");
  CHECK(message_of(make_replay({.scenario = "three-token", .row = 2})) == kNoError);
}

TEST_CASE("a scenario that isn't there is refused with the nearest name") {
  CHECK(message_of(make_replay({.scenario = "three-tokens"})) == "unknown scenario 'three-tokens'");
  CHECK(test::hint_of(make_replay({.scenario = "three-tokens"})) ==
        "did you mean 'three-token'? known: break-it, max-changes, three-token");
}

std::string random_text(std::int64_t seq, std::int64_t head_dim, std::int64_t query_rows,
                        std::int64_t key_rows) {
  return fmt::format(
      R"({{"schema": "flashsim.scenario/1", "problem": {{"seq": {}, "head_dim": {}, "causal": false}},
    "tensors": {{"random": {{"seed": 1}}}}, "tiling": {{"query_rows": {}, "key_rows": {}}}}})",
      seq, head_dim, query_rows, key_rows);
}

TEST_CASE("a score matrix too large for a replay is refused before anything is computed") {
  // 1448² scores are just below 2²¹; one row of them is little to record.
  CHECK(test::replay_text(random_text(1448, 1, 128, 64), {.row = 0}).ok());
  const auto report = test::replay_text(random_text(1449, 1, 128, 64), {.row = 0});
  CHECK(message_of(report) ==
        "big.json is too large to replay step by step (B 1 · H 1 · N 1449 · d 1, tiles 128×64)");
}

TEST_CASE("the advice for a scenario that is too large makes it small enough") {
  // N² scores alone are beyond the limit: neither larger tiles nor one row alone change them.
  const std::string text = random_text(1449, 1, 128, 64);
  const bool one_row_works = test::replay_text(text, {.row = 0}).ok();
  const bool larger_tiles_work = test::replay_text(text, {.tiles = {2000, 2000}}).ok();
  const std::string hint = test::hint_of(test::replay_text(text));
  CHECK((hint.find("--row") != std::string::npos) == one_row_works);
  CHECK((hint.find("tiles") != std::string::npos) == larger_tiles_work);
}

TEST_CASE("frames that hold too many numbers are refused, and fewer rows or larger tiles are the way out") {
  const std::string text = random_text(64, 1500, 1, 1);
  const auto report = test::replay_text(text);
  CHECK(message_of(report) ==
        "big.json is too large to replay step by step (B 1 · H 1 · N 64 · d 1500, tiles 1×1)");
  CHECK(test::hint_of(report) ==
        "make the sequence shorter or the tiles larger, or replay one row with --row");
  CHECK(test::replay_text(text, {.row = 63}).ok());
  CHECK(test::replay_text(text, {.tiles = {64, 64}}).ok());
}

/// A chip of 3 rows, 2 keys and a head dimension of 4 that holds nothing but zeros.
class EmptyChip : public ChipValues {
 public:
  [[nodiscard]] NumberMatrix read(ChipValue) const override {
    return {.rows = 3, .columns = 4, .numbers = Numbers(12)};
  }
};

TEST_CASE("the recorder keeps no frame beyond its limit, and says so") {
  const Problem problem{.seq = 3, .kv_seq = 2, .head_dim = 4};
  const Step step{.operation = Operation::accumulate, .rows = {0, 3}, .keys = {0, 2}};
  Recorder exact(problem, std::nullopt, 24);
  for (int i = 0; i < 2; ++i) exact.executed(step, EmptyChip());
  CHECK_FALSE(exact.overflowed());
  CHECK(exact.frames().size() == 2);
  for (int i = 0; i < 5; ++i) exact.executed(step, EmptyChip());
  CHECK(exact.overflowed());
  CHECK(exact.frames().size() == 3);
  // One row of each is a third of it.
  Recorder one(problem, 1, 24);
  for (int i = 0; i < 6; ++i) one.executed(step, EmptyChip());
  CHECK_FALSE(one.overflowed());
  CHECK(one.take_frames().size() == 6);
}

TEST_CASE("the recorder names the head and what a load, a repeated load and a store moved") {
  const Problem problem{.seq = 3, .kv_seq = 2, .head_dim = 4, .storage = NumberType::fp16};
  Recorder recorder(problem, std::nullopt, 1000);
  recorder.begin_head(2, 5);
  Step load{.operation = Operation::load, .operand = Operand::K, .rows = {0, 3}, .keys = {0, 2}};
  recorder.executed(load, EmptyChip());
  load.again = true;
  recorder.executed(load, EmptyChip());
  recorder.executed({.operation = Operation::store, .operand = Operand::L, .rows = {0, 3}, .keys = {0, 2}},
                    EmptyChip());
  const auto& frames = recorder.frames();
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].batch == 2);
  CHECK(frames[0].head == 5);
  CHECK(frames[0].hbm_read == Bytes(2 * 4 * 2));
  CHECK(frames[0].hbm_written == Bytes(0));
  CHECK(frames[1].hbm_read == Bytes(0));
  CHECK(frames[2].hbm_written == Bytes(3 * 4));
  CHECK(frames[2].find(ChipValue::L) != nullptr);
  CHECK(frames[2].find(ChipValue::K) == nullptr);
}

}  // namespace
}  // namespace flashsim
