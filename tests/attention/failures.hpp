// Many runs and one assertion: what properties over random shapes are checked with.
#pragma once

#include <string>
#include <vector>

#include "tests/attention/ways.hpp"

namespace flashsim::test {

/// Counts runs, and keeps the first that failed.
class Failures {
 public:
  void add(bool holds, const std::string& where) {
    ++runs_;
    if (!holds && first_.empty()) first_ = where;
  }
  [[nodiscard]] const std::string& first() const { return first_; }
  [[nodiscard]] int runs() const { return runs_; }

 private:
  std::string first_;
  int runs_ = 0;
};

/// Runs `look(T(), way)` for every way and both types.
template <class Look>
void in_every_way(const std::vector<Way>& all, Look look) {
  for (const Way& way : all) {
    look(float(), way);
    look(double(), way);
  }
}

template <class T>
std::string named(const Way& way, const std::string& what) {
  return fmt::format("{} in {}: {}", text_of(way), name_of(number_type<T>()), what);
}

}  // namespace flashsim::test
