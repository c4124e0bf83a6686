#include "core/problem/splits.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/base/parse.hpp"

namespace flashsim {
namespace {

constexpr std::int64_t kMostSplits = 128;
constexpr double kFilled = 0.8;
constexpr double kGoodEnough = 0.85;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a - 1) / b + 1; }

double wave_efficiency(double blocks, std::int64_t splits, std::int64_t sms) {
  const double waves = blocks * static_cast<double>(splits) / static_cast<double>(sms);
  return waves / std::ceil(waves);
}

}  // namespace

Result<SplitsRequest> parse_splits(const std::string& name, const std::string& text) {
  if (text == "auto") return SplitsRequest{};
  const auto count = parse_dimension(name, text);
  if (!count) return Error{count.error().message, "a number of parts, or auto"};
  return SplitsRequest{*count};
}

double SplitChoice::efficiency() const {
  return wave_efficiency(static_cast<double>(blocks.value()), splits, sms);
}

bool SplitChoice::filled() const {
  return static_cast<double>(blocks.value()) >= kFilled * static_cast<double>(sms);
}

SplitChoice choose_splits(const Problem& problem, Tiling tiling, std::int64_t sms, SplitsRequest request) {
  const Problem packed = packed_heads(problem);
  SplitChoice choice{.automatic = !request.count,
                     .key_tiles = ceil_div(problem.kv_seq, tiling.key_rows),
                     .blocks = Count(packed.batch) * packed.heads * ceil_div(packed.seq, tiling.query_rows),
                     .sms = sms};
  const auto blocks = static_cast<double>(choice.blocks.value());
  const auto is_looked_at = [&](std::int64_t splits) {
    return splits == 1 || ceil_div(choice.key_tiles, splits) != ceil_div(choice.key_tiles, splits - 1);
  };
  choice.most = std::min({kMostSplits, sms, choice.key_tiles});
  choice.best = 0;
  for (std::int64_t splits = 1; splits <= choice.most; ++splits) {
    if (is_looked_at(splits)) choice.best = std::max(choice.best, wave_efficiency(blocks, splits, sms));
  }
  if (request.count) {
    choice.splits = *request.count;
  } else if (!choice.filled()) {
    while (!is_looked_at(choice.splits) ||
           wave_efficiency(blocks, choice.splits, sms) < kGoodEnough * choice.best) {
      ++choice.splits;
    }
  }
  return choice;
}

}  // namespace flashsim
