#include "core/base/parallel.hpp"

#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("every index is worked on once, whatever the number of threads") {
  for (const int threads : {-1, 0, 1, 2, 7}) {
    for (const std::int64_t count : {0, 1, 3, 1000}) {
      std::vector<int> done(static_cast<std::size_t>(count));
      std::atomic<bool> workers_are_known{true};
      for_each_index(threads, count, [&](int worker, std::int64_t index) {
        ++done[static_cast<std::size_t>(index)];
        if (worker < 0 || worker >= std::max(threads, 1)) workers_are_known = false;
      });
      CHECK(std::count(done.begin(), done.end(), 1) == count);
      CHECK(workers_are_known);
    }
  }
}

}  // namespace
}  // namespace flashsim
