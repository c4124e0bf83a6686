// What the backward walks load before they use it, and write before they load it.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/problem/operands.hpp"
#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"
#include "tests/small_shapes.hpp"

namespace flashsim {
namespace {

using test::for_every_small_shape;
using Pair = std::pair<std::int64_t, std::int64_t>;

/// Holds every use against what lies on the chip of the thread block that makes it, and every load against
/// what has been written to HBM before.
class LoadsBeforeUses : public Listener {
 public:
  explicit LoadsBeforeUses(Algorithm algorithm) : standard_(algorithm == Algorithm::standard) {}
  [[nodiscard]] const std::string& missing() const { return missing_; }

  void kernel(std::string_view name, std::int64_t) override {
    kernel_ = name;
    block_ = {-2, -2};
  }

  void step(const Step& step) override {
    using enum Operation;
    const std::int64_t i = step.query_tile;
    const std::int64_t j = step.key_tile;
    enter_block(step);
    switch (step.operation) {
      case load:
        if (is_made_backward(step.operand)) need(in_hbm_, step.operand, place_of(step.operand, i, j));
        have(step.operand, i, j);
        break;
      case initialise: write(step); break;
      case store:
        need(on_chip_, step.operand, place_of(step.operand, i, j));
        write(step);
        break;
      case reset:
        for (const Operand sum : {Operand::dK, Operand::dV, Operand::dQ}) have(sum, i, j);
        break;
      case row_dot:
        if (standard_) {
          need_all_keys(Operand::P, i);
          need_all_keys(Operand::dP, i);
        } else {
          use(Operand::O, i, j);
          use(Operand::dO, i, j);
        }
        have(Operand::D, i, j);
        break;
      case scores:
        use(Operand::Q, i, j);
        use(Operand::K, i, j);
        have(Operand::S, i, j);
        break;
      case mask: use(Operand::S, i, j); break;
      case probabilities:
        use(Operand::S, i, j);
        use(Operand::L, i, j);
        have(Operand::P, i, j);
        break;
      case value_gradient:
        use(Operand::P, i, j);
        use(Operand::dO, i, j);
        use(Operand::dV, i, j);
        break;
      case probability_gradient:
        use(Operand::dO, i, j);
        use(Operand::V, i, j);
        have(Operand::dP, i, j);
        break;
      case score_gradient:
        for (const Operand each : {Operand::P, Operand::dP, Operand::D}) use(each, i, j);
        have(Operand::dS, i, j);
        break;
      case query_gradient:
        use(Operand::dS, i, j);
        use(Operand::K, i, j);
        use(Operand::dQ, i, j);
        break;
      case key_gradient:
        use(Operand::dS, i, j);
        use(Operand::Q, i, j);
        use(Operand::dK, i, j);
        break;
      case discard:
        for (const Operand each : {Operand::S, Operand::P, Operand::dP, Operand::dS}) {
          on_chip_.erase({each, place_of(each, i, j)});
        }
        break;
      default: fail("unknown " + std::string(name_of(step.operation)));
    }
  }

 private:
  using Held = std::set<std::pair<Operand, Pair>>;

  static bool is_made_backward(Operand operand) {
    const std::array made{Operand::D, Operand::dQ, Operand::dQ_sum, Operand::dP, Operand::dS};
    return std::find(made.begin(), made.end(), operand) != made.end();
  }
  /// What is summed in HBM is dQ on the chip.
  static Operand chip_name(Operand operand) { return operand == Operand::dQ_sum ? Operand::dQ : operand; }
  static Pair place_of(Operand operand, std::int64_t i, std::int64_t j) {
    switch (shape_of(operand)) {
      case OperandShape::key_rows: return {-1, j};
      case OperandShape::scores: return {i, j};
      default: return {i, -1};
    }
  }

  /// A thread block has its own chip.
  void enter_block(const Step& step) {
    const std::int64_t i = step.query_tile;
    const std::int64_t j = step.key_tile;
    Pair block{i, -1};
    if (kernel_ == "gradients" || kernel_ == "value_gradient" || kernel_ == "key_gradient") block = {-1, j};
    if (kernel_ == "probability_gradient") block = {i, j};
    if (block != block_) on_chip_.clear();
    block_ = block;
  }
  void have(Operand operand, std::int64_t i, std::int64_t j) {
    on_chip_.insert({chip_name(operand), place_of(operand, i, j)});
  }
  void use(Operand operand, std::int64_t i, std::int64_t j) {
    need(on_chip_, operand, place_of(operand, i, j));
  }
  void need_all_keys(Operand operand, std::int64_t i) {
    // The row block is whole when every key tile that HBM holds of it is here.
    for (const auto& [held, place] : in_hbm_) {
      if (held == Operand::dP && place.first == i) need(on_chip_, operand, place);
    }
  }
  void need(const Held& held, Operand operand, Pair place) {
    const Operand name = &held == &on_chip_ ? chip_name(operand) : operand;
    if (held.count({name, place}) == 1) return;
    fail(fmt::format("{} {} {} in {}", name_of(operand), place.first, place.second, kernel_));
  }
  void write(const Step& step) {
    in_hbm_.insert({step.operand, place_of(step.operand, step.query_tile, step.key_tile)});
  }
  void fail(const std::string& what) {
    if (missing_.empty()) missing_ = what;
  }

  bool standard_;
  std::string kernel_;
  Pair block_{-2, -2};
  Held on_chip_, in_hbm_;
  std::string missing_;
};

TEST_CASE("backward, everything is loaded or made before it is used, and written before it is loaded") {
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::flash2}) {
    for (const NumberType storage : {NumberType::fp16, NumberType::fp64}) {
      for_every_small_shape(4, [&](Problem p, Tiling t) {
        p.storage = storage;
        LoadsBeforeUses check(algorithm);
        walk_backward(algorithm, p, t, check);
        CAPTURE(shape_text(p), tiling_text(t), facts_of(algorithm).name);
        REQUIRE(check.missing() == "");
      });
    }
  }
}
}  // namespace
}  // namespace flashsim
