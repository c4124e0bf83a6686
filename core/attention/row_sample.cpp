#include "core/attention/row_sample.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "core/problem/block_pattern.hpp"
#include "core/problem/mask.hpp"

namespace flashsim {
namespace {

/// What a pair costs beside its d products isn't less than sixteen of them.
double pair_cost(const Problem& problem) {
  return static_cast<double>(std::max<std::int64_t>(problem.head_dim, 16));
}

double row_cost(const Problem& problem, std::int64_t row, const BlockPattern* pattern = nullptr) {
  const std::int64_t visible = visible_keys(problem, row);
  const std::int64_t shown = pattern == nullptr ? visible : pattern->keys_shown(row, visible);
  return static_cast<double>(shown) * pair_cost(problem);
}

/// Of one query head.
double head_cost(const Problem& problem, const BlockPattern* pattern = nullptr) {
  double cost = 0;
  for (std::int64_t row = 0; row < problem.seq; ++row) cost += row_cost(problem, row, pattern);
  return cost;
}

RowSample all_rows(std::int64_t batch, std::int64_t heads, std::int64_t rows) {
  RowSample sample{.of = batch * heads * rows};
  sample.rows.reserve(static_cast<std::size_t>(sample.of));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t r = 0; r < rows; ++r) sample.rows.push_back({b, h, r});
    }
  }
  return sample;
}

/// `count` of the numbers 0 … length − 1, the first and the last among them, evenly spread.
std::vector<std::int64_t> spread(std::int64_t length, std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t k = 0; k < count; ++k) {
    const double at = count == 1 ? 0 : static_cast<double>(k) / static_cast<double>(count - 1);
    const auto number = static_cast<std::int64_t>(std::floor(at * static_cast<double>(length - 1)));
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  }
  return numbers;
}

/// Keys `keys` of some key/value heads; the note says which.
RowSample keys_of(const Problem& problem, const std::vector<RowPlace>& heads,
                  const std::vector<std::int64_t>& keys, const std::string& which) {
  RowSample sample{.of = problem.batch * problem.kv_heads * problem.kv_seq};
  for (const RowPlace& head : heads) {
    for (const std::int64_t key : keys) sample.rows.push_back({head.batch, head.head, key});
  }
  sample.note = fmt::format("{} of {} keys: {}", sample.rows.size(), sample.of, which);
  return sample;
}

/// The first and the last key/value head.
std::vector<RowPlace> outer_kv_heads(const Problem& problem) {
  std::vector<RowPlace> heads{{0, 0, 0}};
  const RowPlace last{problem.batch - 1, problem.kv_heads - 1, 0};
  if (last != heads[0]) heads.push_back(last);
  return heads;
}

/// The last keys, as many as the rows that see them can be afforded; rows and keys cost alike.
RowSample last_keys(const Problem& problem, double products) {
  std::vector<RowPlace> heads = outer_kv_heads(problem);
  const std::int64_t heads_a_group = problem.heads / problem.kv_heads;
  const auto group = static_cast<double>(heads_a_group);
  for (; !heads.empty(); heads.pop_back()) {
    const double most = products / (2 * group * static_cast<double>(heads.size()));
    std::int64_t first_row = problem.seq;
    double cost = 0;
    while (first_row > 0 && cost + row_cost(problem, first_row - 1) <= most) {
      cost += row_cost(problem, --first_row);
    }
    std::vector<std::int64_t> keys;
    for (std::int64_t key = problem.kv_seq; key-- > 0;) {
      if (first_query_seeing(problem, key) < first_row) break;
      keys.push_back(key);
    }
    if (keys.empty()) continue;
    std::reverse(keys.begin(), keys.end());
    return keys_of(problem, heads, keys,
                   heads.size() > 1 ? "the last of the first and of the last key/value head"
                                    : "the last of the first key/value head");
  }
  return {.of = problem.batch * problem.kv_heads * problem.kv_seq};
}

/// Some keys of the first key/value head, all of whose queries are needed.
RowSample spread_keys(const Problem& problem, double products) {
  const std::int64_t heads_a_group = problem.heads / problem.kv_heads;
  const auto group = static_cast<double>(heads_a_group);
  const double left = products - group * head_cost(problem);
  const double key_cost = group * static_cast<double>(problem.seq) * pair_cost(problem);
  const double affordable = std::floor(left / key_cost);
  if (!(affordable >= 1)) return {.of = problem.batch * problem.kv_heads * problem.kv_seq};
  const auto count = static_cast<std::int64_t>(std::min(affordable, static_cast<double>(problem.kv_seq)));
  return keys_of(problem, {{0, 0, 0}}, spread(problem.kv_seq, count), "of the first key/value head");
}

}  // namespace

RowSample all_query_rows(const Problem& problem) {
  return all_rows(problem.batch, problem.heads, problem.seq);
}

RowSample all_key_rows(const Problem& problem) {
  return all_rows(problem.batch, problem.kv_heads, problem.kv_seq);
}

RowSample sample_query_rows(const Problem& problem, Tiling tiling, double products,
                            const BlockPattern* pattern) {
  const std::int64_t n = problem.seq;
  const std::int64_t total = problem.batch * problem.heads * n;
  if (static_cast<double>(problem.batch * problem.heads) * head_cost(problem, pattern) <= products) {
    return all_query_rows(problem);
  }
  std::set<RowPlace> chosen;
  double cost = 0;
  const auto take = [&](const RowPlace& place, bool whatever_it_costs) {
    const double more = row_cost(problem, place.row, pattern);
    if (!whatever_it_costs && cost + more > products) return false;
    if (chosen.insert(place).second) cost += more;
    return true;
  };
  const std::int64_t br = std::min(tiling.query_rows, n);
  const std::int64_t last_tile = (n - 1) / br * br;
  const RowPlace last_head{problem.batch - 1, problem.heads - 1, 0};
  for (const RowPlace& head : {RowPlace{}, last_head}) {
    for (const std::int64_t row : {std::int64_t{0}, n - 1}) take({head.batch, head.head, row}, true);
  }
  for (const RowPlace& head : {RowPlace{}, last_head}) {
    for (const std::int64_t row : {br - 1, br, last_tile - 1, last_tile}) {
      if (row >= 0 && row < n) take({head.batch, head.head, row}, false);
    }
  }
  // Steps of the golden ratio, without a common divisor with the number of rows, reach every row once and
  // leave no large gap wherever they stop.
  auto stride = static_cast<std::int64_t>(static_cast<double>(total) * 0.6180339887498949);
  while (stride < 1 || std::gcd(stride, total) != 1) ++stride;
  std::int64_t at = total / 2;
  for (std::int64_t k = 0; k < total; ++k) {
    if (!take({at / n / problem.heads, at / n % problem.heads, at % n}, false)) break;
    at = at >= total - stride ? at - (total - stride) : at + stride;
  }
  RowSample sample{.rows = {chosen.begin(), chosen.end()}, .of = total};
  sample.note = fmt::format("{} of {} rows: the first and the last, tile edges, and a spread",
                            sample.rows.size(), total);
  return sample;
}

RowSample sample_key_rows(const Problem& problem, double products) {
  const double all = 2 * static_cast<double>(problem.batch * problem.heads) * head_cost(problem);
  if (all <= products) return all_key_rows(problem);
  RowSample sample = problem.causal ? last_keys(problem, products) : spread_keys(problem, products);
  if (sample.rows.empty()) {
    sample.note = fmt::format(
        "dK and dV weren't checked: those of one key need every query that sees it, more than {:.3g} "
        "products "
        "of a pair and d",
        products);
  }
  return sample;
}

}  // namespace flashsim
