// A walk written down, to be looked at afterwards.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/schedule/walk.hpp"

namespace flashsim::test {

/// Everything that a walk does, in order.
class FollowedWalk : public Listener {
 public:
  /// To listen to what the caller walks.
  FollowedWalk() = default;
  FollowedWalk(Algorithm algorithm, const Problem& problem, Tiling tiling) {
    walk(algorithm, problem, tiling, *this);
  }
  FollowedWalk(const Problem& problem, const Method& method) { walk(problem, method, *this); }

  /// The steps, with the kernel that each belongs to.
  [[nodiscard]] const std::vector<Step>& steps() const& { return steps_; }
  [[nodiscard]] std::vector<Step> steps() && { return std::move(steps_); }
  [[nodiscard]] const std::vector<std::size_t>& kernel_of_step() const { return kernel_of_step_; }
  /// The kernels: name and thread blocks, of all its launches where it is told once for them.
  [[nodiscard]] const std::vector<std::pair<std::string, std::int64_t>>& kernels() const { return kernels_; }
  /// One line each: "kernel attention 2", "allocate O", "load K 0 1", "finish 0".
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

  void step(const Step& step) override {
    steps_.push_back(step);
    kernel_of_step_.push_back(kernels_.size());
    lines_.push_back(line(step));
  }
  void kernel(std::string_view name, std::int64_t blocks) override {
    kernels_.emplace_back(name, blocks);
    lines_.push_back(fmt::format("kernel {} {}", name, blocks));
  }
  void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) override {
    kernels_.emplace_back(name, blocks);
    lines_.push_back(fmt::format("kernel {} {} in {} launches", name, blocks, launches));
  }
  void allocate(Operand operand, Bytes) override {
    lines_.push_back(fmt::format("allocate {}", name_of(operand)));
  }
  void release(Operand operand, Bytes) override {
    lines_.push_back(fmt::format("release {}", name_of(operand)));
  }

 private:
  static std::string line(const Step& step) {
    using enum Operation;
    std::string text(name_of(step.operation));
    const bool moves = step.operation == initialise || step.operation == load || step.operation == store;
    if (moves) text += fmt::format(" {}", name_of(step.operand));
    if (step.query_tile >= 0) text += fmt::format(" {}", step.query_tile);
    if (step.key_tile >= 0) text += fmt::format(" {}", step.key_tile);
    if (step.part >= 0) text += fmt::format(" part {}", step.part);
    if (step.again) text += " again";
    if (step.idle) text += " idle";
    if (step.elsewhere) text += " elsewhere";
    return text;
  }

  std::vector<Step> steps_;
  std::vector<std::size_t> kernel_of_step_;
  std::vector<std::pair<std::string, std::int64_t>> kernels_;
  std::vector<std::string> lines_;
};

/// The backward walk of the algorithm, followed to its end.
inline FollowedWalk followed_backward(Algorithm algorithm, const Problem& p, Tiling t) {
  FollowedWalk followed;
  walk_backward(algorithm, p, t, followed);
  return followed;
}

/// `text`, a line each.
inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (const std::string_view line = text.substr(0, end); !line.empty()) lines.emplace_back(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

}  // namespace flashsim::test
