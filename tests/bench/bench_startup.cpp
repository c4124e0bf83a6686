// How long whole commands take, from exec to exit, beside the shortest process there is (/bin/true).
//
//   bench_startup [repeats]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace {

/// Seconds that one run takes; −1 where it fails.
double run_once(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = 1;
  const bool started = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  if (started) waitpid(child, &status, 0);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  posix_spawn_file_actions_destroy(&actions);
  return started && status == 0 ? taken.count() : -1;
}

struct Case {
  const char* name;
  std::vector<std::string> command;
  double limit_ms;  // 0: none
};

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 51;
  const std::string flashsim = FLASHSIM_BINARY_DIR "/flashsim";
  const std::vector<Case> cases{
      {"/bin/true", {"/bin/true"}, 0},
      {"flashsim --version", {flashsim, "--version"}, 0},
      {"flashsim --seq 8192 --algo flash", {flashsim, "--seq", "8192", "--algo", "flash"}, 10},
      {"flashsim --seq 1048576", {flashsim, "--seq", "1048576"}, 20},
      {"flashsim compare --seq 131072", {flashsim, "compare", "--seq", "131072"}, 100},
      {"flashsim replay three-token", {flashsim, "replay", "three-token"}, 0},
  };
  std::printf("%-36s %9s %9s %9s %12s\n", "whole process, ms", "median", "min", "limit", "x /bin/true");
  double peer = 0;
  bool within = true;
  for (const Case& one : cases) {
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) times.push_back(1000 * run_once(one.command));
    std::sort(times.begin(), times.end());
    if (times.front() < 0) {
      std::printf("%-36s failed\n", one.name);
      return 1;
    }
    const double median = times[times.size() / 2];
    if (peer == 0) peer = median;
    const std::string limit = one.limit_ms > 0 ? std::to_string(static_cast<int>(one.limit_ms)) : "-";
    std::printf("%-36s %9.2f %9.2f %9s %12.2f\n", one.name, median, times.front(), limit.c_str(),
                median / peer);
    within = within && (one.limit_ms == 0 || median <= one.limit_ms);
  }
  std::printf("%s\n", within ? "all within their limits" : "OVER a limit");
  return within ? 0 : 1;
}
