// The backward walks: their order spelled out, what they visit, what they load before they use it, and
// what they move.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/problem/operands.hpp"
#include "core/schedule/tile_grid.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/random_problem.hpp"
#include "tests/small_shapes.hpp"
#include "tests/visibility.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::for_every_small_shape;
using test::lines_of;
using Pair = std::pair<std::int64_t, std::int64_t>;

FollowedWalk backward(Algorithm algorithm, const Problem& p, Tiling t) {
  FollowedWalk followed;
  walk_backward(algorithm, p, t, followed);
  return followed;
}

constexpr Problem kTiny{
    .batch = 2, .heads = 4, .kv_heads = 2, .seq = 3, .kv_seq = 3, .head_dim = 2, .causal = true};

TEST_CASE("flash2 goes backward key tile by key tile, past the query tiles that see it") {
  CHECK(backward(Algorithm::flash2, kTiny, {2, 2}).lines() == lines_of(R"(
allocate D
allocate dQ sum
kernel deltas 2
initialise dQ sum 0
load O 0
load dO 0
row_dot 0
store D 0
initialise dQ sum 1
load O 1
load dO 1
row_dot 1
store D 1
allocate dK
allocate dV
kernel gradients 2
load K 0
load V 0
reset 0
load Q 0 0
load dO 0 0
load L 0 0
load D 0 0
scores 0 0
mask 0 0
probabilities 0 0
value_gradient 0 0
probability_gradient 0 0
score_gradient 0 0
load dQ sum 0 0
query_gradient 0 0
store dQ sum 0 0
key_gradient 0 0
discard 0 0
load Q 1 0
load dO 1 0
load L 1 0
load D 1 0
scores 1 0
mask 1 0 idle
probabilities 1 0
value_gradient 1 0
probability_gradient 1 0
score_gradient 1 0
load dQ sum 1 0
query_gradient 1 0
store dQ sum 1 0
key_gradient 1 0
discard 1 0
store dK 0
store dV 0
load K 1
load V 1
reset 1
load Q 1 1
load dO 1 1
load L 1 1
load D 1 1
scores 1 1
mask 1 1 idle
probabilities 1 1
value_gradient 1 1
probability_gradient 1 1
score_gradient 1 1
load dQ sum 1 1
query_gradient 1 1
store dQ sum 1 1
key_gradient 1 1
discard 1 1
store dK 1
store dV 1
allocate dQ
kernel conversion 2
load dQ sum 0
store dQ 0
load dQ sum 1
store dQ 1
)"));
}

TEST_CASE("where the sum of dQ has the storage type it is dQ, and nothing is converted") {
  Problem p = kTiny;
  p.storage = NumberType::fp32;
  const FollowedWalk walk = backward(Algorithm::flash2, p, {2, 2});
  CHECK(walk.kernels() == std::vector<std::pair<std::string, std::int64_t>>{{"deltas", 2}, {"gradients", 2}});
  for (const Step& step : walk.steps()) CHECK(step.operand != Operand::dQ_sum);
  CHECK(walk.lines()[1] == "allocate dQ");
}

TEST_CASE("standard goes backward in five kernels over whole matrices") {
  CHECK(backward(Algorithm::standard, kTiny, {3, 2}).lines() == lines_of(R"(
allocate dV
kernel value_gradient 2
reset 0
load P 0 0
load dO 0 0
value_gradient 0 0
store dV 0
reset 1
load P 0 1
load dO 0 1 again
value_gradient 0 1
store dV 1
allocate dP
kernel probability_gradient 2
load dO 0 0
load V 0 0
probability_gradient 0 0
store dP 0 0
load dO 0 1 again
load V 0 1
probability_gradient 0 1
store dP 0 1
kernel score_gradient 1
load P 0 0
load dP 0 0
load P 0 1
load dP 0 1
row_dot 0
score_gradient 0 0
store dS 0 0
score_gradient 0 1
store dS 0 1
allocate dQ
kernel query_gradient 1
reset 0
load dS 0 0
load K 0 0
query_gradient 0 0
load dS 0 1
load K 0 1
query_gradient 0 1
store dQ 0
allocate dK
kernel key_gradient 2
reset 0
load dS 0 0
load Q 0 0
key_gradient 0 0
store dK 0
reset 1
load dS 0 1
load Q 0 1 again
key_gradient 0 1
store dK 1
)"));
}

/// The tile pairs that hold at least one visible pair.
std::set<Pair> visible_tiles(const Problem& p, Tiling t) {
  std::set<Pair> found;
  for (std::int64_t row = 0; row < p.seq; ++row) {
    for (std::int64_t key = 0; key < p.kv_seq; ++key) {
      if (test::visible(p, row, key)) found.insert({row / t.query_rows, key / t.key_rows});
    }
  }
  return found;
}

TEST_CASE("flash2 works backward once on every tile pair with a visible entry, and on no other") {
  for_every_small_shape(5, [](const Problem& p, Tiling t) {
    const std::set<Pair> visible = visible_tiles(p, t);
    const FollowedWalk walk = backward(Algorithm::flash2, p, t);
    std::map<Operation, std::map<Pair, int>> times;
    for (const Step& step : walk.steps()) ++times[step.operation][{step.query_tile, step.key_tile}];
    std::map<Pair, int> once;
    for (const Pair& pair : visible) once[pair] = 1;
    using enum Operation;
    CAPTURE(shape_text(p), tiling_text(t));
    for (const Operation operation : {scores, mask, probabilities, value_gradient, probability_gradient,
                                      score_gradient, query_gradient, key_gradient, discard}) {
      REQUIRE(times[operation] == once);
    }
  });
}

TEST_CASE("standard works backward on the full matrix, causal or not") {
  for_every_small_shape(4, [](const Problem& p, Tiling t) {
    std::map<Operation, std::map<Pair, int>> times;
    const FollowedWalk walk = backward(Algorithm::standard, p, t);
    for (const Step& step : walk.steps()) ++times[step.operation][{step.query_tile, step.key_tile}];
    const TileGrid grid(p, t);
    std::map<Pair, int> once;
    for (std::int64_t i = 0; i < grid.query_tiles(); ++i) {
      for (std::int64_t j = 0; j < grid.key_tiles(); ++j) once[{i, j}] = 1;
    }
    using enum Operation;
    for (const Operation operation :
         {value_gradient, probability_gradient, score_gradient, query_gradient, key_gradient}) {
      REQUIRE(times[operation] == once);
    }
    REQUIRE(times[mask].empty());
  });
}

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

/// Bytes read and written of each tensor, and what crosses into the SMs, which repeats what HBM reads once.
struct Moved {
  std::map<Operand, std::int64_t> read, written, into_sm;
  bool operator==(const Moved&) const = default;
};

Moved moved_by(const FollowedWalk& walk, const Problem& p) {
  Moved moved;
  for (const Step& step : walk.steps()) {
    const auto bytes = static_cast<std::int64_t>(tile_bytes(step, p).count.value());
    if (step.operation == Operation::load) {
      moved.into_sm[step.operand] += bytes;
      if (!step.again) moved.read[step.operand] += bytes;
    }
    if (step.operation == Operation::store || step.operation == Operation::initialise) {
      moved.written[step.operand] += bytes;
    }
  }
  return moved;
}

std::int64_t stored_bytes(const Problem& p, std::int64_t elements) { return elements * size_of(p.storage); }
std::int64_t summed_bytes(const Problem& p, std::int64_t elements) {
  return elements * (p.storage == NumberType::fp64 ? 8 : 4);
}

/// By straight loops over the visible pairs.
Moved flash2_moves(const Problem& p, Tiling t) {
  std::int64_t rows = 0;  // of query tiles, once for each visited pair
  std::set<std::int64_t> key_tiles;
  for (const auto& [i, j] : visible_tiles(p, t)) {
    rows += std::min(t.query_rows, p.seq - i * t.query_rows);
    key_tiles.insert(j);
  }
  std::int64_t keys = 0;
  for (const std::int64_t j : key_tiles) keys += std::min(t.key_rows, p.kv_seq - j * t.key_rows);
  const std::int64_t n = p.seq;
  const std::int64_t d = p.head_dim;
  const bool converts = p.storage != (p.storage == NumberType::fp64 ? NumberType::fp64 : NumberType::fp32);
  const Operand sum = converts ? Operand::dQ_sum : Operand::dQ;
  Moved moved;
  if (rows > 0) {
    moved.read = {{Operand::Q, stored_bytes(p, rows * d)},
                  {Operand::L, summed_bytes(p, rows)},
                  {Operand::D, summed_bytes(p, rows)},
                  {Operand::K, stored_bytes(p, keys * d)},
                  {Operand::V, stored_bytes(p, keys * d)}};
  }
  moved.read[Operand::O] = stored_bytes(p, n * d);
  moved.read[Operand::dO] = stored_bytes(p, (rows + n) * d);
  const std::int64_t sums_read = rows * d + (converts ? n * d : 0);
  if (sums_read > 0) moved.read[sum] = summed_bytes(p, sums_read);
  moved.written = {{Operand::D, summed_bytes(p, n)},
                   {Operand::dK, stored_bytes(p, p.kv_seq * d)},
                   {Operand::dV, stored_bytes(p, p.kv_seq * d)}};
  moved.written[sum] = summed_bytes(p, (rows + n) * d);
  if (converts) moved.written[Operand::dQ] = stored_bytes(p, n * d);
  moved.into_sm = moved.read;  // a flash kernel pays for every load
  return moved;
}

Moved standard_moves(const Problem& p, Tiling t) {
  const std::int64_t n = p.seq;
  const std::int64_t m = p.kv_seq;
  const std::int64_t d = p.head_dim;
  const std::int64_t query_tiles = (n + t.query_rows - 1) / t.query_rows;
  const std::int64_t key_tiles = (m + t.key_rows - 1) / t.key_rows;
  const auto bytes = [&](std::int64_t elements) { return stored_bytes(p, elements); };
  return {.read = {{Operand::P, bytes(2 * n * m)},
                   {Operand::dP, bytes(n * m)},
                   {Operand::dS, bytes(2 * n * m)},
                   {Operand::dO, bytes(2 * n * d)},
                   {Operand::Q, bytes(n * d)},
                   {Operand::K, bytes(m * d)},
                   {Operand::V, bytes(m * d)}},
          .written = {{Operand::dP, bytes(n * m)},
                      {Operand::dS, bytes(n * m)},
                      {Operand::dQ, bytes(n * d)},
                      {Operand::dK, bytes(m * d)},
                      {Operand::dV, bytes(m * d)}},
          .into_sm = {{Operand::P, bytes(2 * n * m)},
                      {Operand::dP, bytes(n * m)},
                      {Operand::dS, bytes(2 * n * m)},
                      {Operand::dO, bytes(2 * n * d * key_tiles)},
                      {Operand::Q, bytes(n * d * key_tiles)},
                      {Operand::K, bytes(m * d * query_tiles)},
                      {Operand::V, bytes(m * d * query_tiles)}}};
}

TEST_CASE("backward, every tensor's bytes are those that loops over the mask count") {
  const auto look = [](const Problem& p, Tiling t) {
    CAPTURE(shape_text(p), tiling_text(t), name_of(p.storage), p.causal, name_of(p.alignment));
    REQUIRE(moved_by(backward(Algorithm::flash2, p, t), p) == flash2_moves(p, t));
    REQUIRE(moved_by(backward(Algorithm::standard, p, t), p) == standard_moves(p, t));
  };
  for (const NumberType storage : {NumberType::fp16, NumberType::fp32, NumberType::fp64}) {
    for_every_small_shape(4, [&](Problem p, Tiling t) {
      p.storage = storage;
      look(p, t);
    });
  }
  test::RandomShapes shapes(2307);
  for (int i = 0; i < 200; ++i) {
    const test::Shape shape = shapes.next(40);
    look(shape.problem, shape.tiling);
  }
}

TEST_CASE("standard moves 7 N² + 8 N d elements backward") {
  for (const std::int64_t n : {1, 5, 64}) {
    const Problem p{.seq = n, .kv_seq = n, .head_dim = 16, .storage = NumberType::fp32};
    const Moved moved = moved_by(backward(Algorithm::standard, p, {4, 8}), p);
    std::int64_t bytes = 0;
    for (const auto& [operand, read] : moved.read) bytes += read;
    for (const auto& [operand, written] : moved.written) bytes += written;
    CHECK(bytes == 4 * (7 * n * n + 8 * n * 16));
  }
}

TEST_CASE("a key tile that no query sees is written as zeros, and nothing is loaded for it") {
  // Top-left, two queries on six keys: the keys from 2 on are behind every row.
  const Problem p{.seq = 2,
                  .kv_seq = 6,
                  .head_dim = 2,
                  .causal = true,
                  .alignment = CausalAlignment::top_left,
                  .storage = NumberType::fp32};
  std::map<std::int64_t, std::vector<std::string>> lines;
  const FollowedWalk walk = backward(Algorithm::flash2, p, {2, 2});
  for (const Step& step : walk.steps()) {
    if (step.key_tile > 0) {
      lines[step.key_tile].push_back(fmt::format("{} {}", name_of(step.operation), name_of(step.operand)));
    }
  }
  const std::vector<std::string> expected{"reset dK", "store dK", "store dV"};
  CHECK(lines == std::map<std::int64_t, std::vector<std::string>>{{1, expected}, {2, expected}});
}

}  // namespace
}  // namespace flashsim
