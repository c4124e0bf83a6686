#include "core/schedule/softmax.hpp"

#include <algorithm>
#include <initializer_list>

namespace flashsim {
namespace {

using Kind = SoftmaxStep::Kind;

/// One kernel on one row.
class RowWalk {
 public:
  RowWalk(const SoftmaxProblem& problem, const RowsOnChip& chip, SoftmaxListener& listener)
      : problem_(problem), chip_(chip), listener_(listener) {}

  /// The passes one after another, the last of which may store what it makes of each piece.
  void kernel(std::string_view name, std::initializer_list<SoftmaxPass> passes) {
    listener_.kernel(name);
    bool loaded = false;
    for (const SoftmaxPass pass : passes) {
      for (std::int64_t begin = 0; begin < problem_.columns; begin += chip_.columns) {
        const Range piece{begin, std::min(begin + chip_.columns, problem_.columns)};
        if (!loaded) listener_.step({.kind = Kind::load, .columns = piece});
        listener_.step({.kind = Kind::work, .pass = pass, .columns = piece});
        if (pass == SoftmaxPass::normalise) listener_.step({.kind = Kind::store, .columns = piece});
      }
      loaded = chip_.fits();
    }
  }
  void store_results() { listener_.step({.kind = Kind::results, .columns = {0, problem_.columns}}); }

 private:
  const SoftmaxProblem& problem_;
  const RowsOnChip& chip_;
  SoftmaxListener& listener_;
};

}  // namespace

void walk_softmax(SoftmaxWay way, const SoftmaxProblem& problem, const RowsOnChip& chip,
                  SoftmaxListener& listener) {
  using enum SoftmaxPass;
  RowWalk row(problem, chip, listener);
  switch (way) {
    case SoftmaxWay::naive: return row.kernel("softmax", {sum, normalise});
    case SoftmaxWay::safe: return row.kernel("softmax", {maximum, safe_sum, normalise});
    case SoftmaxWay::online: return row.kernel("softmax", {online, normalise});
    case SoftmaxWay::safe_top_k:
      row.kernel("softmax", {maximum, safe_sum, normalise});
      row.kernel("top-k", {top_k});
      return row.store_results();
    case SoftmaxWay::online_top_k:
      row.kernel("softmax", {online, normalise});
      row.kernel("top-k", {top_k});
      return row.store_results();
    case SoftmaxWay::fused_top_k: row.kernel("softmax and top-k", {online_top_k}); return row.store_results();
  }
}

}  // namespace flashsim
