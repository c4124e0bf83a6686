#include "core/base/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

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

TEST_CASE("every task is done once, by a thread that has begun") {
  for (const int threads : {1, 2, 7}) {
    for (const std::int64_t count : {0, 1, 3, 100}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      std::atomic<int> begun = 0;
      std::atomic<bool> numbered = true;
      run_tasks(threads, count, [&](int thread) {
        ++begun;
        if (thread < 0 || thread >= threads) numbered = false;
        return [&](std::int64_t task) { ++done[static_cast<std::size_t>(task)]; };
      });
      INFO(threads << " threads, " << count << " tasks");
      CHECK(numbered);
      CHECK(begun <= std::max<std::int64_t>(1, std::min<std::int64_t>(threads, count)));
      CHECK(std::all_of(done.begin(), done.end(), [](const auto& each) { return each == 1; }));
    }
  }
}

TEST_CASE("what a thread throws as it begins reaches the caller") {
  for (const int thrower : {0, 1, 2}) {
    const auto run = [&] {
      std::atomic<int> waiting = 3;
      run_tasks(3, 30, [&](int thread) {
        // All three have begun before one gives up.
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        if (thread == thrower) throw std::runtime_error("no memory");
        return [](std::int64_t) {};
      });
    };
    CHECK_THROWS_AS(run(), std::runtime_error);
  }
}

}  // namespace
}  // namespace flashsim
