// Tasks on threads, claimed in order: a task may wait for an earlier one, which some thread has begun.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace flashsim {

/// Calls work(thread, task) for tasks 0 … count−1 on `threads` threads, of which the caller's is number 0.
/// The work may not throw.
template <class Work>
void run_tasks(int threads, std::int64_t count, const Work& work) {
  std::atomic<std::int64_t> next = 0;
  const auto take = [&](int thread) {
    for (std::int64_t task = next++; task < count; task = next++) work(thread, task);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads && thread < count; ++thread) others.emplace_back(take, thread);
  take(0);
}

}  // namespace flashsim
