#include "core/base/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flashsim {
namespace {

/// Optimal string alignment distance.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view given, const std::vector<std::string>& known) {
  // A long text is no slip of the fingers, and comparing it costs time in proportion.
  if (given.size() > 64) return {};
  std::string lowered(given);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string best;
  // Of a very short name two edits leave nothing.
  std::size_t fewest =
      (given.size() <= 2 ? given.size() / 2 : std::max<std::size_t>(2, given.size() / 3)) + 1;
  for (const std::string& name : known) {
    const std::size_t needed = edits(lowered, name);
    if (needed < fewest) {
      fewest = needed;
      best = name;
    }
  }
  return best;
}

Error unknown_name(std::string_view what, std::string_view given, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(given, known);
  const std::string list = fmt::format("known: {}", fmt::join(known, ", "));
  return {fmt::format("unknown {} '{}'", what, given),
          nearest.empty() ? list : fmt::format("did you mean '{}'? {}", nearest, list)};
}

}  // namespace flashsim
