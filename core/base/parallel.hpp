// Work divided among threads by index. Which thread does what isn't told, so nothing may depend on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace flashsim {

/// Does tasks 0 … count−1 on `threads` threads, of which the caller's is number 0. Each thread calls
/// begin(thread) once, which makes what it needs and gives back what does a task: begin(thread)(task). Tasks
/// are claimed in order, so one may wait for an earlier one, which some thread has begun. Whatever `begin`
/// throws is thrown to the caller; doing a task may not throw.
template <class Begin>
void run_tasks(int threads, std::int64_t count, const Begin& begin) {
  std::atomic<std::int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto take_part = [&](int thread) {
    try {
      auto work = begin(thread);
      for (std::int64_t task = next++; task < count; task = next++) work(task);
    } catch (...) {
      const std::scoped_lock lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads && thread < count; ++thread) others.emplace_back(take_part, thread);
    take_part(0);
  }
  if (failure) std::rethrow_exception(failure);
}

/// Calls work(thread, index) for every index in [0, count), each once, on up to `threads` threads. `work`
/// doesn't throw.
template <class Work>
void for_each_index(int threads, std::int64_t count, const Work& work) {
  run_tasks(threads, count,
            [&](int thread) { return [&work, thread](std::int64_t index) { work(thread, index); }; });
}

}  // namespace flashsim
