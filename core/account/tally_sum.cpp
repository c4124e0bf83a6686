#include "core/account/tally_sum.hpp"

namespace flashsim {

void add_flows_and_work(Tally& sum, const Tally& more) {
  const auto add = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  add(sum.hbm, more.hbm);
  add(sum.initial, more.initial);
  add(sum.sm, more.sm);
  add(sum.sram, more.sram);
  sum.work.products += more.work.products;
  sum.work.scale += more.work.scale;
  sum.work.mask += more.work.mask;
  sum.work.softmax += more.work.softmax;
  sum.work.rescale += more.work.rescale;
  sum.work.normalise += more.work.normalise;
  sum.work.exponentials += more.work.exponentials;
  sum.steps += more.steps;
}

}  // namespace flashsim
