// What a thread block keeps on the chip, and how many of them a machine runs at once.
#include <map>
#include <string>
#include <vector>

#include "core/account/occupancy.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

std::map<std::string, std::int64_t> sizes(const std::vector<OnChipTile>& tiles) {
  std::map<std::string, std::int64_t> found;
  for (const OnChipTile& tile : tiles) found[tile.name] = tile.size.value();
  return found;
}

/// An SM with room for one, two … blocks, to be told by one limit at a time.
Machine machine() {
  Machine m;
  m.sms = 10;
  m.shared_memory_per_sm = Bytes(100'000);
  m.shared_memory_per_block = Bytes(99'000);
  m.registers_per_sm = Bytes(256'000);
  m.blocks_per_sm = 32;
  return m;
}

Occupancy occupancy(std::int64_t blocks, std::int64_t shared, std::int64_t registers,
                    const Machine& m = machine()) {
  return occupancy_of({"attention", blocks}, {{{"Q_i", Bytes(shared)}}, {{"O_i", Bytes(registers)}}}, m,
                      m.shared_memory_per_block);
}

using Sizes = std::map<std::string, std::int64_t>;

TEST_CASE("a block of the tiled algorithms keeps Q, K and V in shared memory and the rest in registers") {
  const Problem p{.head_dim = 5, .storage = NumberType::fp16};
  for (const Algorithm algorithm :
       {Algorithm::flash1, Algorithm::flash2, Algorithm::three_pass, Algorithm::three_pass_stored}) {
    const Footprint f = footprint_of(algorithm, "attention", p, {7, 3});
    CHECK(sizes(f.shared_memory) == Sizes{{"Q_i", 7 * 5 * 2}, {"K_j", 3 * 5 * 2}, {"V_j", 3 * 5 * 2}});
    CHECK(sizes(f.registers) ==
          Sizes{{"S_ij", 7 * 3 * 4}, {"P_ij", 7 * 3 * 2}, {"O_i", 7 * 5 * 4}, {"m_i, l_i", 2 * 7 * 4}});
    CHECK(f.shared_total() == Bytes((7 + 2 * 3) * 5 * 2));
    CHECK(f.shared_total() == tile_footprint(p, {7, 3}));
    CHECK(f.register_total() == Bytes(84 + 42 + 140 + 56));
  }
}

TEST_CASE("sums are kept in float64 for float64 storage") {
  const Problem p{.head_dim = 5, .storage = NumberType::fp64};
  CHECK(sizes(footprint_of(Algorithm::flash2, "attention", p, {7, 3}).registers) ==
        Sizes{{"S_ij", 7 * 3 * 8}, {"P_ij", 7 * 3 * 8}, {"O_i", 7 * 5 * 8}, {"m_i, l_i", 2 * 7 * 8}});
}

TEST_CASE("the blocks of standard keep the operands of their product, and streaming kernels keep nothing") {
  const Problem p{.head_dim = 5, .storage = NumberType::fp16};
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
    const Footprint scores = footprint_of(algorithm, "scores", p, {7, 3});
    CHECK(sizes(scores.shared_memory) == Sizes{{"Q_i", 70}, {"K_j", 30}});
    CHECK(sizes(scores.registers) == Sizes{{"S_ij", 84}});
    const Footprint output = footprint_of(algorithm, "output", p, {7, 3});
    CHECK(sizes(output.shared_memory) == Sizes{{"P_ij", 42}, {"V_j", 30}});
    CHECK(sizes(output.registers) == Sizes{{"O_i", 140}});
    for (const char* kernel : {"softmax", "scale", "mask"}) {
      CHECK(footprint_of(algorithm, kernel, p, {7, 3}).shared_total() == Bytes());
      CHECK(footprint_of(algorithm, kernel, p, {7, 3}).register_total() == Bytes());
    }
  }
}

TEST_CASE("a flash block that makes gradients keeps five operand tiles in shared memory, or four") {
  const Problem p{.head_dim = 5, .storage = NumberType::fp16};
  const auto of = [&](Algorithm a, const char* kernel) { return footprint_of(a, kernel, p, {7, 3}); };
  const Sizes operands{{"Q_i", 70}, {"dO_i", 70}, {"K_j", 30}, {"V_j", 30}};
  Sizes with_scores = operands;
  with_scores["dS_ij"] = 42;
  CHECK(sizes(of(Algorithm::flash2, "gradients").shared_memory) == with_scores);
  CHECK(sizes(of(Algorithm::flash2, "gradients").registers) == Sizes{{"S_ij", 84},
                                                                     {"P_ij", 42},
                                                                     {"dP_ij", 84},
                                                                     {"dQ_i", 140},
                                                                     {"dK_j", 60},
                                                                     {"dV_j", 60},
                                                                     {"L_i, D_i", 56}});
  CHECK(sizes(of(Algorithm::flash1, "gradients").shared_memory) == with_scores);
  CHECK(sizes(of(Algorithm::flash1, "gradients").registers).at("m_i, l_i, D_i") == 84);
  CHECK(sizes(of(Algorithm::flash2, "key_value_gradients").shared_memory) == operands);
  CHECK(sizes(of(Algorithm::flash2, "key_value_gradients").registers) == Sizes{{"S_ij", 84},
                                                                               {"P_ij", 42},
                                                                               {"dP_ij", 84},
                                                                               {"dS_ij", 42},
                                                                               {"dK_j", 60},
                                                                               {"dV_j", 60},
                                                                               {"L_i, D_i", 56}});
  CHECK(sizes(of(Algorithm::flash2, "query_gradient").shared_memory) == operands);
  CHECK(sizes(of(Algorithm::flash2, "query_gradient").registers) ==
        Sizes{{"S_ij", 84}, {"P_ij", 42}, {"dP_ij", 84}, {"dS_ij", 42}, {"dQ_i", 140}, {"L_i, D_i", 56}});
  for (const char* kernel : {"deltas", "conversion"}) {
    CHECK(of(Algorithm::flash2, kernel).shared_total() + of(Algorithm::flash2, kernel).register_total() ==
          Bytes());
  }
}

TEST_CASE("each product of standard's gradients keeps its operands and its sum") {
  const Problem p{.head_dim = 5, .storage = NumberType::fp16};
  for (const Algorithm algorithm : {Algorithm::standard, Algorithm::eager}) {
    const auto of = [&](const char* kernel) { return footprint_of(algorithm, kernel, p, {7, 3}); };
    CHECK(sizes(of("value_gradient").shared_memory) == Sizes{{"P_ij", 42}, {"dO_i", 70}});
    CHECK(sizes(of("value_gradient").registers) == Sizes{{"dV_j", 60}});
    CHECK(sizes(of("probability_gradient").shared_memory) == Sizes{{"dO_i", 70}, {"V_j", 30}});
    CHECK(sizes(of("probability_gradient").registers) == Sizes{{"dP_ij", 84}});
    CHECK(sizes(of("query_gradient").shared_memory) == Sizes{{"dS_ij", 42}, {"K_j", 30}});
    CHECK(sizes(of("query_gradient").registers) == Sizes{{"dQ_i", 140}});
    CHECK(sizes(of("key_gradient").shared_memory) == Sizes{{"dS_ij", 42}, {"Q_i", 70}});
    CHECK(sizes(of("key_gradient").registers) == Sizes{{"dK_j", 60}});
    for (const char* kernel : {"score_gradient", "scale_gradient", "dropout_gradient", "dropout"}) {
      CHECK(of(kernel).shared_total() + of(kernel).register_total() == Bytes());
    }
  }
}

TEST_CASE("a block of memory-efficient keeps the operands of a tile inside its chunk") {
  const Problem p{.head_dim = 5, .storage = NumberType::fp16};
  const auto footprint = [&](const char* kernel, Tiling chunks) {
    return footprint_of(Algorithm::memory_efficient, kernel, p, chunks);
  };
  CHECK(sizes(footprint("scores", {1024, 4096}).shared_memory) == Sizes{{"Q_i", 1280}, {"K_j", 1280}});
  CHECK(sizes(footprint("output", {1024, 4096}).registers) == Sizes{{"O_i", 128 * 5 * 4}});
  CHECK(sizes(footprint("scores", {7, 3}).shared_memory) == Sizes{{"Q_i", 70}, {"K_j", 30}});
  for (const char* kernel : {"exponentials", "combine"}) {
    CHECK(footprint(kernel, {1024, 4096}).shared_total() == Bytes());
  }
}

TEST_CASE("the SMs at work are those that get a block of one launch, the waves those of all") {
  const Machine m = machine();
  const Occupancy some = occupancy_of({"scores", 10, 2}, {{{"Q_i", Bytes(49'000)}}, {}}, m, Bytes(99'000));
  CHECK(some.launches == Count(2));
  CHECK(some.waves == 0.5);
  CHECK(some.sm_share == 0.5);
}

TEST_CASE("shared memory limits the blocks of an SM, with what the hardware keeps back for each") {
  // 1000 B are kept back for a block: two of 49 000 B fill the SM, and a byte more leaves room for one.
  CHECK(occupancy(1, 49'000, 1).blocks_per_sm == 2);
  CHECK(occupancy(1, 49'001, 1).blocks_per_sm == 1);
  CHECK(occupancy(1, 99'000, 1).blocks_per_sm == 1);
}

TEST_CASE("registers limit the blocks of an SM, and one block may want more than there are") {
  CHECK(occupancy(1, 1, 128'000).blocks_per_sm == 2);
  CHECK(occupancy(1, 1, 128'001).blocks_per_sm == 1);
  CHECK_FALSE(occupancy(1, 1, 256'000).registers_overflow);
  CHECK(occupancy(1, 1, 256'001).registers_overflow);
  CHECK(occupancy(1, 1, 256'001).blocks_per_sm == 1);
}

TEST_CASE("the machine's own limit holds where the chip has room for more") {
  CHECK(occupancy(1, 1, 1).blocks_per_sm == 32);
  const Occupancy streaming = occupancy_of({"softmax", 1}, {}, machine(), Bytes(99'000));
  CHECK(streaming.blocks_per_sm == 32);
}

TEST_CASE("waves are blocks over the places for them, and a share of the SMs is at work") {
  const Occupancy some = occupancy(5, 49'000, 1);  // 20 places
  CHECK(some.waves == 0.25);
  CHECK(some.sm_share == 0.5);
  const Occupancy many = occupancy(50, 49'000, 1);
  CHECK(many.waves == 2.5);
  CHECK(many.sm_share == 1.0);
}

TEST_CASE("a limit for a block beyond the machine's makes room for one such block") {
  const Machine m = machine();
  const Footprint large{{{"Q_i", Bytes(150'000)}}, {}};
  CHECK(occupancy_of({"attention", 1}, large, m, Bytes(196'608)).blocks_per_sm == 1);
}

}  // namespace
}  // namespace flashsim
