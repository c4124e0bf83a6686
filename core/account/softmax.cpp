#include "core/account/softmax.hpp"

#include <algorithm>

#include "core/schedule/softmax.hpp"

namespace flashsim {
namespace {

class SoftmaxLedger : public SoftmaxListener {
 public:
  SoftmaxLedger(SoftmaxWay way, const SoftmaxProblem& problem) : way_(way), problem_(problem) {}

  void kernel(std::string_view name) override {
    of_output_ = name == "top-k";
    tally_.kernels += 1;
  }
  void step(const SoftmaxStep& step) override {
    tally_.steps += 1;
    const Count elements = step.columns.size();
    const Bytes bytes(elements * size_of(problem_.storage));
    switch (step.kind) {
      case SoftmaxStep::Kind::load: (of_output_ ? tally_.output : tally_.input).read += bytes; break;
      case SoftmaxStep::Kind::work:
        if (step.columns.begin == 0) tally_.passes += 1;
        tally_.exponentials += elements * exponentials_of(step.pass);
        break;
      case SoftmaxStep::Kind::store: tally_.output.written += bytes; break;
      case SoftmaxStep::Kind::results:
        tally_.results.written += problem_.result_bytes();
        // Fused, the k largest are still scores, and become probabilities now.
        if (way_ == SoftmaxWay::fused_top_k) tally_.exponentials += problem_.top_k.value_or(0);
        break;
    }
  }
  /// The same for all rows, which walk alike.
  [[nodiscard]] SoftmaxTally all_rows() const {
    SoftmaxTally all = tally_;
    const Count rows = problem_.rows;
    for (Flow* flow : {&all.input, &all.output, &all.results}) {
      *flow = {.read = flow->read * rows, .written = flow->written * rows};
    }
    all.exponentials = all.exponentials * rows;
    return all;
  }

 private:
  SoftmaxWay way_;
  const SoftmaxProblem& problem_;
  SoftmaxTally tally_;
  bool of_output_ = false;  // what is loaded is y
};

}  // namespace

Flow SoftmaxTally::total() const {
  Flow sum = input;
  sum += output;
  sum += results;
  return sum;
}

bool SoftmaxTally::overflowed() const {
  const std::vector<Figure> figures = figures_of(*this);
  return std::any_of(figures.begin(), figures.end(), [](const Figure& f) { return f.value.overflowed(); });
}

std::vector<Figure> figures_of(const SoftmaxTally& t) {
  std::vector<Figure> figures;
  const auto add = [&](const std::string& name, Flow flow) {
    figures.push_back({name + ".read_bytes", flow.read.count});
    figures.push_back({name + ".write_bytes", flow.written.count});
  };
  add("input", t.input);
  add("output", t.output);
  add("results", t.results);
  add("total", t.total());
  figures.push_back({"exponentials", t.exponentials});
  figures.push_back({"passes", t.passes});
  figures.push_back({"kernels", t.kernels});
  figures.push_back({"steps", t.steps});
  return figures;
}

std::vector<Discrepancy> discrepancies(const SoftmaxTally& predicted, const SoftmaxTally& counted) {
  const std::vector<Figure> ours = figures_of(predicted);
  const std::vector<Figure> theirs = figures_of(counted);
  std::vector<Discrepancy> found;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].value != theirs[i].value) found.push_back({ours[i].name, ours[i].value, theirs[i].value});
  }
  return found;
}

SoftmaxTally count_softmax(SoftmaxWay way, const SoftmaxProblem& problem, const RowsOnChip& chip) {
  SoftmaxLedger ledger(way, problem);
  walk_softmax(way, problem, chip, ledger);
  return ledger.all_rows();
}

}  // namespace flashsim
