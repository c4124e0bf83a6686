#include "core/problem/block_pattern.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/file.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/parse.hpp"
#include "core/problem/library.hpp"
#include "core/problem/mask.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "flashsim.pattern/1";
constexpr const char* kForms = "window:W with W in tokens, strided:C with C in key tiles, or a file.json";
/// An account adds up query tile by query tile.
constexpr std::int64_t kMostQueryTiles = std::int64_t{1} << 26;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a - 1) / b + 1; }

/// "window:1024" or "strided:4".
Result<PatternRequest> named_pattern(const std::string& name, const std::string& text) {
  for (const auto& [prefix, kind] :
       {std::pair{"window", PatternKind::window}, {"strided", PatternKind::strided}}) {
    if (!text.starts_with(fmt::format("{}:", prefix))) continue;
    const std::string number = text.substr(std::string_view(prefix).size() + 1);
    const auto size = parse_dimension(fmt::format("{} {}", name, prefix), number);
    if (!size) return Error{size.error().message, kForms};
    return PatternRequest{.kind = kind, .size = *size};
  }
  return Error{fmt::format("{} can't be '{}'", name, text), kForms};
}

Result<PatternRequest> rows_of(const json& value, const std::string& path, const std::string& source) {
  if (!value.is_array() || value.empty()) {
    return Error{fmt::format("{} must be a list of texts, not {}", path, short_json(value)), ""};
  }
  PatternRequest pattern{.kind = PatternKind::rows, .source = source};
  for (std::size_t i = 0; i < value.size(); ++i) {
    const json& row = value[i];
    const bool is_text = row.is_string();
    if (!is_text || row.get_ref<const std::string&>().find_first_not_of("01") != std::string::npos) {
      return Error{
          fmt::format("{}[{}] must be a text of 0 and 1, a key tile each, not {}", path, i, short_json(row)),
          ""};
    }
    pattern.rows.push_back(row.get<std::string>());
  }
  return pattern;
}

/// What the rows must be, where they aren't.
Outcome check_rows(const PatternRequest& pattern, const Problem& problem, Tiling tiling) {
  const std::int64_t query_tiles = ceil_div(problem.seq, tiling.query_rows);
  const std::int64_t key_tiles = ceil_div(problem.kv_seq, tiling.key_rows);
  const std::string hint = fmt::format("{} texts of {} characters each, or other tiles: --tile-q, --tile-k",
                                       query_tiles, key_tiles);
  if (static_cast<std::int64_t>(pattern.rows.size()) != query_tiles) {
    return Error{fmt::format("pattern {} has {} rows, and {} queries in tiles of {} need {}", pattern.source,
                             pattern.rows.size(), problem.seq, tiling.query_rows, query_tiles),
                 hint};
  }
  for (std::size_t i = 0; i < pattern.rows.size(); ++i) {
    if (static_cast<std::int64_t>(pattern.rows[i].size()) == key_tiles) continue;
    return Error{
        fmt::format("pattern {}: row {} has {} characters, and {} keys in tiles of {} need {}",
                    pattern.source, i, pattern.rows[i].size(), problem.kv_seq, tiling.key_rows, key_tiles),
        hint};
  }
  return std::nullopt;
}

}  // namespace

Result<PatternRequest> parse_pattern(const std::string& text) {
  if (!is_path(text)) return named_pattern("--pattern", text);
  const auto file = read_file(text);
  if (!file) return file.error();
  const std::string source = fmt::format("'{}'", text);
  const auto parsed = parse_json(*file, source);
  if (!parsed) return parsed.error();
  JsonReader reader(*parsed, source + ": ");
  reader.expect_schema(kSchema);
  PatternRequest pattern;
  if (const json* rows = reader.value("rows")) {
    auto read = rows_of(*rows, reader.path_of("rows"), source);
    if (read) {
      pattern = std::move(read).value();
    } else {
      reader.fail(read.error());
    }
  } else {
    reader.fail({fmt::format("{} is missing", reader.path_of("rows")), ""});
  }
  if (auto error = reader.finish()) return *error;
  return pattern;
}

Result<PatternRequest> pattern_from_json(const json& value, const std::string& path) {
  if (value.is_string()) return named_pattern(path, value.get<std::string>());
  return rows_of(value, path, path);
}

nlohmann::ordered_json pattern_json(const PatternRequest& pattern) {
  if (pattern.kind == PatternKind::rows) return pattern.rows;
  return pattern_text(pattern);
}

std::string pattern_text(const PatternRequest& pattern) {
  switch (pattern.kind) {
    case PatternKind::window: return fmt::format("window:{}", pattern.size);
    case PatternKind::strided: return fmt::format("strided:{}", pattern.size);
    case PatternKind::rows: return pattern.source;
  }
  return "";
}

Result<std::shared_ptr<const BlockPattern>> BlockPattern::on_tiles(PatternRequest request,
                                                                   const Problem& problem, Tiling tiling) {
  const std::int64_t query_tiles = ceil_div(problem.seq, tiling.query_rows);
  if (query_tiles > kMostQueryTiles) {
    return Error{fmt::format("{} query tiles are too many for a pattern, of which an account is added up "
                             "tile by tile; up to {} are taken",
                             query_tiles, kMostQueryTiles),
                 "make the problem smaller (--seq) or the tiles larger (--tile-q)"};
  }
  if (request.kind == PatternKind::rows) {
    if (auto error = check_rows(request, problem, tiling)) return *error;
  }
  return std::shared_ptr<const BlockPattern>(new BlockPattern(std::move(request), problem, tiling));
}

BlockPattern::BlockPattern(PatternRequest request, const Problem& problem, Tiling tiling)
    : request_(std::move(request)),
      tiling_(tiling),
      seq_(problem.seq),
      kv_seq_(problem.kv_seq),
      key_tiles_(ceil_div(problem.kv_seq, tiling.key_rows)),
      first_position_(position_of_first_query(problem)) {}

std::int64_t BlockPattern::keys_shown(std::int64_t row, std::int64_t end) const {
  const std::int64_t i = row / tiling_.query_rows;
  std::int64_t keys = 0;
  for (std::int64_t j = next(i, 0); j * tiling_.key_rows < end; j = next(i, j + 1)) {
    if (j == key_tiles_) break;
    keys += std::min((j + 1) * tiling_.key_rows, end) - j * tiling_.key_rows;
  }
  return keys;
}

std::int64_t BlockPattern::next(std::int64_t i, std::int64_t j) const {
  const std::int64_t first = i * tiling_.query_rows + first_position_;
  const std::int64_t last = std::min((i + 1) * tiling_.query_rows, seq_) - 1 + first_position_;
  switch (request_.kind) {
    case PatternKind::window: {
      const std::int64_t from = std::max<std::int64_t>(first - request_.size + 1, 0);
      const std::int64_t to = std::min(last + request_.size - 1, kv_seq_ - 1);
      const std::int64_t tile = std::max(j, from / tiling_.key_rows);
      return to < from || tile > to / tiling_.key_rows ? key_tiles_ : tile;
    }
    case PatternKind::strided: {
      const std::int64_t diagonal = last < 0 ? -1 : last / tiling_.key_rows;
      const std::int64_t stripe = (j / request_.size + 1) * request_.size - 1;
      const std::int64_t local = std::max(j, diagonal - request_.size + 1);
      return std::min({key_tiles_, stripe, local <= diagonal ? local : key_tiles_});
    }
    case PatternKind::rows: {
      const std::string& row = request_.rows[static_cast<std::size_t>(i)];
      const std::size_t at = row.find('1', static_cast<std::size_t>(j));
      return at == std::string::npos ? key_tiles_ : static_cast<std::int64_t>(at);
    }
  }
  return key_tiles_;
}

}  // namespace flashsim
