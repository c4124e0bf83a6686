#include "core/problem/block_pattern.hpp"

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/small_shapes.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::message_of;

std::int64_t position(const Problem& p, std::int64_t row) {
  return p.alignment == CausalAlignment::bottom_right ? row + p.kv_seq - p.seq : row;
}

/// The block holds a pair that is less than `size` apart.
bool in_window(const Problem& p, Tiling t, std::int64_t i, std::int64_t j, std::int64_t size) {
  for (std::int64_t row = i * t.query_rows; row < std::min((i + 1) * t.query_rows, p.seq); ++row) {
    for (std::int64_t key = j * t.key_rows; key < std::min((j + 1) * t.key_rows, p.kv_seq); ++key) {
      if (std::abs(position(p, row) - key) < size) return true;
    }
  }
  return false;
}

/// One of the last `size` tiles up to the one that holds the last row's position, or an every `size`-th.
bool in_stride(const Problem& p, Tiling t, std::int64_t i, std::int64_t j, std::int64_t size) {
  if ((j + 1) % size == 0) return true;
  const std::int64_t last = position(p, std::min((i + 1) * t.query_rows, p.seq) - 1);
  if (last < 0) return false;
  const std::int64_t diagonal = last / t.key_rows;
  return j <= diagonal && diagonal - j < size;
}

TEST_CASE("windows and strides are there exactly where their rule says, for every small shape") {
  test::for_every_small_shape(5, [](const Problem& p, Tiling t) {
    for (const std::int64_t size : {1, 2, 3, 7}) {
      for (const PatternKind kind : {PatternKind::window, PatternKind::strided}) {
        const auto pattern = BlockPattern::on_tiles({.kind = kind, .size = size}, p, t).value();
        for (std::int64_t i = 0; i * t.query_rows < p.seq; ++i) {
          for (std::int64_t j = 0; j * t.key_rows < p.kv_seq; ++j) {
            CAPTURE(shape_text(p), tiling_text(t), name_of(p.alignment), size, i, j);
            REQUIRE(pattern->has(i, j) == (kind == PatternKind::window ? in_window(p, t, i, j, size)
                                                                       : in_stride(p, t, i, j, size)));
          }
        }
      }
    }
  });
}

TEST_CASE("the keys shown to a row are those of its blocks before the end") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 4, .kv_seq = 7};
  const auto pattern =
      BlockPattern::on_tiles({.kind = PatternKind::rows, .rows = {"1011", "0000"}}, p, {2, 2}).value();
  CHECK(pattern->keys_shown(1, 7) == 2 + 2 + 1);
  CHECK(pattern->keys_shown(1, 5) == 2 + 1);
  CHECK(pattern->keys_shown(0, 0) == 0);
  CHECK(pattern->keys_shown(3, 7) == 0);
  CHECK(pattern->shows(0, 1));
  CHECK_FALSE(pattern->shows(0, 2));
  CHECK(pattern->shows(1, 6));
}

TEST_CASE("a pattern is told as window:W, strided:C or a file") {
  const auto window = parse_pattern("window:1024").value();
  CHECK(window.kind == PatternKind::window);
  CHECK(window.size == 1024);
  CHECK(pattern_text(window) == "window:1024");
  CHECK(pattern_text(parse_pattern("strided:4").value()) == "strided:4");
  const test::TemporaryFolder folder;
  const std::string path = folder.file("p.json", R"({"schema": "flashsim.pattern/1", "rows": ["10", "11"]})");
  const auto rows = parse_pattern(path).value();
  CHECK(rows.rows == std::vector<std::string>{"10", "11"});
  CHECK(pattern_json(rows).dump() == R"(["10","11"])");
  CHECK(pattern_from_json(nlohmann::json::parse(R"(["10","11"])"), "input.pattern").value().rows ==
        rows.rows);
  CHECK(pattern_from_json("window:3", "input.pattern").value().size == 3);
}

TEST_CASE("what isn't a pattern is refused with its value") {
  CHECK(message_of(parse_pattern("diagonal")) == "--pattern can't be 'diagonal'");
  CHECK(hint_of(parse_pattern("diagonal")).starts_with("window:W with W in tokens"));
  CHECK(message_of(parse_pattern("window:0")).starts_with("--pattern window must be"));
  for (const char* wrong :
       {"window", "window:", "window:-3", "window:x", "strided:1e99", "strided:nan", ""}) {
    CHECK_FALSE(parse_pattern(wrong).ok());
  }
  CHECK_FALSE(parse_pattern("no/such/file.json").ok());
  const test::TemporaryFolder folder;
  const auto in_file = [&](const char* text) { return parse_pattern(folder.file("p.json", text)); };
  CHECK(message_of(in_file(R"({"schema": "flashsim.pattern/1"})")).ends_with("rows is missing"));
  CHECK(message_of(in_file(R"({"schema": "flashsim.pattern/1", "rows": ["12"]})"))
            .find("rows[0] must be a text of 0 and 1, a key tile each, not") != std::string::npos);
  CHECK_FALSE(in_file(R"({"schema": "flashsim.pattern/1", "rows": []})").ok());
  CHECK_FALSE(in_file(R"({"schema": "flashsim.pattern/1", "rows": ["1"], "row": 1})").ok());
  CHECK_FALSE(in_file(R"({"rows": ["1"]})").ok());
}

TEST_CASE("rows of the wrong size are told what they must be") {
  const Problem p{.heads = 1, .kv_heads = 1, .seq = 5, .kv_seq = 7};
  const auto on_tiles = [&](std::vector<std::string> rows) {
    return BlockPattern::on_tiles({.kind = PatternKind::rows, .rows = std::move(rows), .source = "'p.json'"},
                                  p, {2, 2});
  };
  CHECK(on_tiles({"1111", "1111", "1111"}).ok());
  const auto few = on_tiles({"1111"});
  CHECK(message_of(few) == "pattern 'p.json' has 1 rows, and 5 queries in tiles of 2 need 3");
  CHECK(hint_of(few) == "3 texts of 4 characters each, or other tiles: --tile-q, --tile-k");
  CHECK(message_of(on_tiles({"1111", "111", "1111"})) ==
        "pattern 'p.json': row 1 has 3 characters, and 7 keys in tiles of 2 need 4");
  const Problem huge{.heads = 1, .kv_heads = 1, .seq = std::int64_t{1} << 40};
  CHECK(message_of(BlockPattern::on_tiles({.size = 1}, huge, {128, 128}))
            .starts_with("8589934592 query tiles are too many"));
}

}  // namespace
}  // namespace flashsim
