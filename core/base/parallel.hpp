// Work divided among threads by index. Which thread does what isn't told, so nothing may depend on it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace flashsim {

/// Calls work(worker, index) for every index in [0, count), each once, on up to `threads` threads; `worker`
/// is a number from 0 to threads − 1, and one worker does one thing at a time. `work` doesn't throw.
template <class Work>
void for_each_index(int threads, std::int64_t count, const Work& work) {
  std::atomic<std::int64_t> next{0};
  const auto run = [&](int worker) {
    for (std::int64_t index = next++; index < count; index = next++) work(worker, index);
  };
  const auto workers =
      static_cast<int>(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1)));
  std::vector<std::thread> others;
  for (int worker = 1; worker < workers; ++worker) others.emplace_back(run, worker);
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace flashsim
