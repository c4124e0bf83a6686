#include "core/account/ledger.hpp"

#include <algorithm>
#include <string>

#include "core/account/tally_sum.hpp"

namespace flashsim {

void Ledger::kernel(std::string_view name, std::int64_t blocks) {
  tally_.kernels.push_back({std::string(name), blocks});
}

void Ledger::launches(std::string_view name, std::int64_t launches, std::int64_t blocks) {
  tally_.kernels.push_back({std::string(name), blocks, launches});
}

void Ledger::allocate(Operand, Bytes size) {
  alive_ += size;
  tally_.peak_allocated = std::max(tally_.peak_allocated, alive_);
}

void Ledger::release(Operand, Bytes size) { alive_ = alive_ - size; }

void Ledger::move_in(const Step& step, Bytes bytes) {
  if (!step.again) tally_.hbm_of(step.operand).read += bytes;
  if (step.in_l2) return;
  tally_.sm_of(step.operand).read += bytes;
  tally_.sram_of(step.operation).written += bytes;
}

void Ledger::move_out(const Step& step, Bytes bytes) {
  tally_.hbm_of(step.operand).written += bytes;
  tally_.sm_of(step.operand).written += bytes;
  tally_.sram_of(step.operation).read += bytes;
}

void Ledger::work_on(const Step& step) {
  const Count rows = step.rows.size();
  const Count keys = step.keys.size();
  const Count entries = rows * keys;
  const Count depth = problem_.head_dim;
  const Count stored = size_of(problem_.storage);
  const Count summed = size_of(problem_.accumulation());
  const Bytes tile_of_scores(entries * stored);    // S_ij and P_ij
  const Bytes accumulator(rows * depth * summed);  // O_i while it is summed
  Flow& sram = tally_.sram_of(step.operation);
  Work& work = tally_.work;
  switch (step.operation) {
    case Operation::scores:
      sram += {.read = Bytes((rows + keys) * depth * stored), .written = tile_of_scores};
      work.products += Flops(Count(2) * entries * depth);
      break;
    case Operation::scale:
      sram += {.read = tile_of_scores, .written = tile_of_scores};
      work.scale += Flops(entries);
      break;
    case Operation::mask:
      sram += {.read = tile_of_scores, .written = tile_of_scores};
      work.mask += Flops(entries);
      break;
    case Operation::softmax:
      sram += {.read = tile_of_scores, .written = tile_of_scores};
      work.softmax += Flops(Count(4) * entries);
      work.exponentials += entries;
      break;
    case Operation::online_softmax:
      sram += {.read = tile_of_scores, .written = tile_of_scores};
      work.softmax += Flops(Count(3) * entries);
      work.exponentials += entries;
      break;
    case Operation::rescale:
      sram += {.read = accumulator, .written = accumulator};
      work.rescale += Flops(rows * (depth + 2));
      work.exponentials += rows;
      break;
    case Operation::accumulate:
      sram += {.read = tile_of_scores + Bytes(keys * depth * stored) + accumulator, .written = accumulator};
      work.products += Flops(Count(2) * entries * depth);
      break;
    case Operation::finish:
      if (step.operand != Operand::O) work.normalise += Flops(rows);
      if (step.operand == Operand::l) break;
      // The output of a part stays in the accumulation type.
      sram += {.read = accumulator,
               .written = step.operand == Operand::L_part ? accumulator : Bytes(rows * depth * stored)};
      work.normalise += Flops(rows * depth);
      break;
    case Operation::row_maximum:
      sram += {.read = tile_of_scores};
      work.softmax += Flops(entries);
      break;
    case Operation::denominator:
      sram += {.read = tile_of_scores};
      if (step.operand == Operand::P) sram += {.written = tile_of_scores};
      work.softmax += Flops(Count(2) * entries);
      work.exponentials += entries;
      break;
    case Operation::combine:
      // O_i ← O_i + p · O_part and l ← l + p with p = exp(L_part − m), a part at a time.
      sram += {.read = accumulator + accumulator, .written = accumulator};
      work.rescale += Flops(rows * (Count(2) * depth + 2));
      work.exponentials += rows;
      break;
    case Operation::row_dot: {
      const Count elements = step.operand == Operand::P ? entries : rows * depth;
      sram += {.read = Bytes(Count(2) * elements * stored), .written = Bytes(rows * summed)};
      work.softmax += Flops(Count(2) * elements);
      break;
    }
    case Operation::probabilities: {
      if (step.operand == Operand::l) {
        sram += {.read = tile_of_scores, .written = tile_of_scores};
        work.softmax += Flops(Count(2) * entries);
        work.exponentials += entries;
        break;
      }
      // From m and l, a division more than from L.
      const Count statistics = step.operand == Operand::m ? 2 : 1;
      sram += {.read = tile_of_scores + Bytes(statistics * rows * summed), .written = tile_of_scores};
      work.softmax += Flops(statistics * entries);
      work.exponentials += entries;
      break;
    }
    case Operation::dropout: {
      const Bytes kept(entries * element_size(Operand::Z, problem_));
      if (step.operand == Operand::P) {
        sram += {.read = tile_of_scores, .written = tile_of_scores + kept};
      } else {
        sram += {.read = tile_of_scores + kept, .written = tile_of_scores};
      }
      work.scale += Flops(entries);
      break;
    }
    case Operation::probability_gradient:
      sram += {.read = Bytes((rows + keys) * depth * stored), .written = tile_of_scores};
      work.products += Flops(Count(2) * entries * depth);
      break;
    case Operation::score_gradient:
      sram += {.read = tile_of_scores + tile_of_scores + Bytes(rows * summed), .written = tile_of_scores};
      work.softmax += Flops(Count(2) * entries);
      break;
    case Operation::query_gradient:
      sram += {.read = tile_of_scores + Bytes(keys * depth * stored) + accumulator, .written = accumulator};
      work.products += Flops(Count(2) * entries * depth);
      break;
    case Operation::value_gradient:
    case Operation::key_gradient: {
      const Bytes gradient(keys * depth * summed);
      sram += {.read = tile_of_scores + Bytes(rows * depth * stored) + gradient, .written = gradient};
      work.products += Flops(Count(2) * entries * depth);
      break;
    }
    default: break;
  }
}

void Ledger::step(const Step& step) {
  if (step.elsewhere) return;
  tally_.steps += 1;
  switch (step.operation) {
    case Operation::initialise: {
      // The starting values are constants: they come from registers and cost no on-chip read.
      const Bytes bytes = tile_bytes(step, problem_);
      tally_.initial_of(step.operand).written += bytes;
      tally_.sm_of(step.operand).written += bytes;
      break;
    }
    case Operation::load: move_in(step, tile_bytes(step, problem_)); break;
    case Operation::store: move_out(step, tile_bytes(step, problem_)); break;
    default:
      if (!step.idle) work_on(step);
  }
}

Tally Ledger::times(Count walks) const {
  const auto times = [&](Flow flow) { return Flow{flow.read * walks, flow.written * walks}; };
  Tally all = tally_;
  for (auto* flows : {&all.hbm, &all.initial, &all.sm}) {
    for (Flow& flow : *flows) flow = times(flow);
  }
  for (Flow& flow : all.sram) flow = times(flow);
  Work& work = all.work;
  for (Flops* flops :
       {&work.products, &work.scale, &work.mask, &work.softmax, &work.rescale, &work.normalise}) {
    *flops = *flops * walks;
  }
  work.exponentials = work.exponentials * walks;
  for (KernelLaunch& kernel : all.kernels) kernel.blocks = kernel.blocks * walks;
  return all;
}

Tally added_up(std::span<const Ledger> ledgers) {
  Tally sum;
  for (const Ledger& ledger : ledgers) {
    const Tally& part = ledger.walked();
    add_flows_and_work(sum, part);
    for (const KernelLaunch& kernel : part.kernels) {
      const auto same = std::find_if(sum.kernels.begin(), sum.kernels.end(),
                                     [&](const KernelLaunch& other) { return other.name == kernel.name; });
      if (same == sum.kernels.end()) {
        sum.kernels.push_back(kernel);
      } else {
        same->blocks += kernel.blocks;
      }
    }
  }
  return sum;
}

}  // namespace flashsim
