#include "core/account/check.hpp"

#include <algorithm>

namespace flashsim {

std::vector<Discrepancy> discrepancies(const Tally& predicted, const Tally& counted) {
  const std::vector<Figure> ours = figures_of(predicted);
  const std::vector<Figure> theirs = figures_of(counted);
  const auto find = [](const std::vector<Figure>& figures, const std::string& name) {
    return std::find_if(figures.begin(), figures.end(), [&](const Figure& f) { return f.name == name; });
  };
  std::vector<Discrepancy> found;
  for (const Figure& figure : ours) {
    const auto other = find(theirs, figure.name);
    const Count counted_value = other == theirs.end() ? Count(0) : other->value;
    if (other == theirs.end() || counted_value != figure.value) {
      found.push_back({figure.name, figure.value, counted_value});
    }
  }
  for (const Figure& figure : theirs) {
    if (find(ours, figure.name) == ours.end()) found.push_back({figure.name, Count(0), figure.value});
  }
  return found;
}

}  // namespace flashsim
