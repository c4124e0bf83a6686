// The ledger: a listener that counts what a walk moves and computes.
#pragma once

#include <span>

#include "core/account/tally.hpp"
#include "core/problem/problem.hpp"
#include "core/schedule/walk.hpp"

namespace flashsim {

class Ledger : public Listener {
 public:
  explicit Ledger(const Problem& problem) : problem_(problem) {}

  void step(const Step& step) override;
  void kernel(std::string_view name, std::int64_t blocks) override;
  void launches(std::string_view name, std::int64_t launches, std::int64_t blocks) override;
  void allocate(Operand operand, Bytes size) override;
  void release(Operand operand, Bytes size) override;

  /// What was walked adds up to this: one head, or what an execution told this ledger of all of them.
  [[nodiscard]] const Tally& walked() const { return tally_; }
  /// The same for all B·H heads, which walk alike.
  [[nodiscard]] Tally all_heads() const { return times(Count(problem_.batch) * problem_.heads); }
  /// The same for so many walks.
  [[nodiscard]] Tally times(Count walks) const;

 private:
  void move_in(const Step& step, Bytes bytes);
  void move_out(const Step& step, Bytes bytes);
  void work_on(const Step& step);

  const Problem& problem_;
  Tally tally_;
  Bytes alive_;
};

/// What the ledgers of one execution add up to, which followed every head between them, each step once. Steps
/// are those of all heads, and the launches of a kernel for its heads are one. No peak: what is alive at once
/// is no sum over steps.
Tally added_up(std::span<const Ledger> ledgers);

}  // namespace flashsim
