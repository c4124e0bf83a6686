// FlashAttention-2 backward with the query heads of a group packed, and with its sums left to the L2: by
// straight loops over pairs, and beside the same without.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/account/block_simulation.hpp"
#include "core/account/check.hpp"
#include "core/account/ledger.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

Method backward(Tiling tiling, bool packs, bool in_l2, bool deterministic = false) {
  return {.tiling = tiling,
          .pass = Pass::backward,
          .deterministic = deterministic,
          .packs_groups = packs,
          .sums_in_l2 = in_l2};
}

template <class Look>
void for_many_shapes(Look look) {
  test::for_every_small_shape(3, [&](Problem p, Tiling t) {
    for (p.heads = 1; p.heads <= 3; p.heads += 2) look(p, t);
  });
  test::RandomShapes shapes(51);
  for (int n = 0; n < 150; ++n) {
    const test::Shape shape = shapes.next(20);
    INFO(text_of(shape));
    look(shape.problem, shape.tiling);
  }
}

TEST_CASE("packed or not, summed in the L2 or not, predicted equals counted on every figure") {
  for_many_shapes([](const Problem& p, Tiling t) {
    for (const bool packs : {false, true}) {
      for (const bool in_l2 : {false, true}) {
        for (const bool deterministic : {false, true}) {
          const Method method = backward(t, packs, in_l2, deterministic);
          Ledger ledger(p);
          walk(p, method, ledger);
          std::string text;
          for (const Discrepancy& d :
               discrepancies(predict(p, method).tally, ledger.times(walks_of(p, method)))) {
            text += fmt::format("{}: predicted {}, counted {}\n", d.figure, d.predicted.value(),
                                d.counted.value());
          }
          CAPTURE(packs, in_l2, deterministic, shape_text(p), tiling_text(t));
          CAPTURE(text);
          REQUIRE(text.empty());
        }
      }
    }
  });
}

TEST_CASE("a group loads each key tile that it sees once, and stores its gradient once") {
  for_many_shapes([](const Problem& p, Tiling t) {
    const std::int64_t group = p.heads / p.kv_heads;
    std::set<std::int64_t> reached;
    std::set<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::int64_t query = 0; query < p.seq; ++query) {
      for (std::int64_t head = 0; head < group; ++head) {
        for (std::int64_t key = 0; key < p.kv_seq; ++key) {
          if (!test::visible(p, query, key)) continue;
          reached.insert(key / t.key_rows);
          pairs.insert({(query * group + head) / t.query_rows, key / t.key_rows});
        }
      }
    }
    std::int64_t keys = 0;
    for (const std::int64_t j : reached) keys += std::min((j + 1) * t.key_rows, p.kv_seq) - j * t.key_rows;
    std::int64_t rows = 0;
    for (const auto& [i, j] : pairs) {
      // A key tile that a row sees is visited by all query tiles behind.
      rows += std::min((i + 1) * t.query_rows, p.seq * group) - i * t.query_rows;
    }
    const Tally tally = predict(p, backward(t, true, true)).tally;
    const std::int64_t walks = p.batch * p.kv_heads;
    const std::int64_t e = size_of(p.storage);
    for (const Operand operand : {Operand::K, Operand::V}) {
      REQUIRE(tally.sm_of(operand).read == Bytes(walks * keys * p.head_dim * e));
    }
    for (const Operand operand : {Operand::dK, Operand::dV}) {
      REQUIRE(tally.sm_of(operand).written == whole_size(operand, p));
    }
    REQUIRE(tally.sm_of(Operand::Q).read == Bytes(walks * rows * p.head_dim * e));
  });
}

TEST_CASE("heads of their own are the same packed") {
  test::RandomShapes shapes(52);
  for (int n = 0; n < 100; ++n) {
    test::Shape shape = shapes.next(30);
    shape.problem.kv_heads = shape.problem.heads;
    const Tally packed = predict(shape.problem, backward(shape.tiling, true, false)).tally;
    const Tally apart = predict(shape.problem, backward(shape.tiling, false, false)).tally;
    REQUIRE(discrepancies(packed, apart).empty());
  }
}

TEST_CASE("what is summed in the L2 differs in the sum's way into the SMs alone") {
  test::RandomShapes shapes(53);
  for (int n = 0; n < 100; ++n) {
    const test::Shape shape = shapes.next(30);
    const Problem& p = shape.problem;
    INFO(text_of(shape));
    const Tally into = predict(p, backward(shape.tiling, true, true)).tally;
    const Tally through = predict(p, backward(shape.tiling, true, false)).tally;
    const bool apart = p.storage != p.accumulation();
    const Operand sum = apart ? Operand::dQ_sum : Operand::dQ;
    CHECK(into.sm_of(sum).read == (apart ? whole_size(sum, p) : Bytes()));
    for (const Discrepancy& d : discrepancies(into, through)) {
      INFO(d.figure);
      CHECK((d.figure == fmt::format("sm.{}.read_bytes", name_of(sum)) || d.figure == "sm.total.read_bytes" ||
             d.figure == "sram.load.write_bytes" || d.figure == "sram.total.write_bytes"));
    }
  }
}

TEST_CASE("behind the L2 a sum is the same traffic, whoever adds") {
  const Problem p{.heads = 2, .kv_heads = 1, .seq = 2000, .kv_seq = 2000};
  const Machine m = find_machine("h200").value();
  const auto simulated = [&](bool in_l2) {
    const Method method = backward({64, 128}, true, in_l2);
    const Prediction prediction = predict(p, method);
    std::vector<Occupancy> kernels;
    for (const KernelLaunch& launch : prediction.tally.kernels) {
      kernels.push_back(occupancy_of(launch, footprint_of(method.algorithm, launch.name, p, method.tiling), m,
                                     m.shared_memory_per_block));
    }
    return simulate(p, method, m, {}, kernels, prediction.tally, Flops(1)).value();
  };
  const AfterL2 into = simulated(true).after_l2;
  const AfterL2 through = simulated(false).after_l2;
  CHECK(into.compulsory_read == through.compulsory_read);
  CHECK(into.uncached_read == through.uncached_read);
  CHECK(into.hbm.read == through.hbm.read);
}

}  // namespace
}  // namespace flashsim
