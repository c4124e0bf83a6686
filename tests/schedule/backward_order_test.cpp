// The order of the backward walks of flash1, of flash2 where it is deterministic, and of eager's passes,
// spelled out for three queries on three keys, causal, tiles of two.
#include <algorithm>
#include <string>
#include <vector>

#include "core/schedule/walk.hpp"
#include "tests/catch.hpp"
#include "tests/followed_walk.hpp"
#include "tests/methods.hpp"

namespace flashsim {
namespace {

using test::FollowedWalk;
using test::lines_of;

constexpr Tiling kTiles{2, 2};
constexpr Problem kTiny{
    .batch = 2, .heads = 4, .kv_heads = 2, .seq = 3, .kv_seq = 3, .head_dim = 2, .causal = true};

std::vector<std::string> lines_for(const Method& method, const Problem& problem = kTiny) {
  FollowedWalk followed;
  walk(problem, method, followed);
  return followed.lines();
}

/// The kernels alone, in order.
std::vector<std::string> kernels_for(const Method& method, const Problem& problem = kTiny) {
  FollowedWalk followed;
  walk(problem, method, followed);
  std::vector<std::string> names;
  for (const auto& [name, blocks] : followed.kernels()) names.push_back(name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("flash1 backward carries dQ through HBM from key tile to key tile, from zeros on") {
  CHECK(lines_for({.algorithm = Algorithm::flash1, .tiling = kTiles, .pass = Pass::backward}) == lines_of(R"(
allocate dQ
allocate dK
allocate dV
kernel gradients 1
initialise dQ 0
initialise dQ 1
load K 0
load V 0
reset 0
load Q 0 0
load O 0 0
load dO 0 0
load dQ 0 0
load l 0 0
load m 0 0
scores 0 0
mask 0 0
probabilities 0 0
value_gradient 0 0
probability_gradient 0 0
row_dot 0 0
score_gradient 0 0
query_gradient 0 0
store dQ 0 0
key_gradient 0 0
discard 0 0
load Q 1 0
load O 1 0
load dO 1 0
load dQ 1 0
load l 1 0
load m 1 0
scores 1 0
mask 1 0 idle
probabilities 1 0
value_gradient 1 0
probability_gradient 1 0
row_dot 1 0
score_gradient 1 0
query_gradient 1 0
store dQ 1 0
key_gradient 1 0
discard 1 0
store dK 0
store dV 0
load K 1
load V 1
reset 1
load Q 1 1
load O 1 1
load dO 1 1
load dQ 1 1
load l 1 1
load m 1 1
scores 1 1
mask 1 1 idle
probabilities 1 1
value_gradient 1 1
probability_gradient 1 1
row_dot 1 1
score_gradient 1 1
query_gradient 1 1
store dQ 1 1
key_gradient 1 1
discard 1 1
store dK 1
store dV 1
)"));
}

TEST_CASE("flash1 writes the gradients of keys that no query sees without loading the keys") {
  const Problem p{.heads = 1,
                  .kv_heads = 1,
                  .seq = 2,
                  .kv_seq = 5,
                  .head_dim = 2,
                  .alignment = CausalAlignment::top_left};
  const auto lines = lines_for({.algorithm = Algorithm::flash1, .tiling = kTiles, .pass = Pass::backward}, p);
  CHECK(std::vector<std::string>(lines.end() - 3, lines.end()) ==
        lines_of("reset 2\nstore dK 2\nstore dV 2\n"));
  CHECK(std::count(lines.begin(), lines.end(), "load K 2") == 0);
}

TEST_CASE("deterministic, flash2 has a kernel that makes dQ alone, and nothing goes to HBM to be added to") {
  const Method method{.tiling = kTiles, .pass = Pass::backward, .deterministic = true};
  CHECK(kernels_for(method) == Names{"deltas", "key_value_gradients", "query_gradient"});
  const auto lines = lines_for(method);
  for (const std::string& line : lines) {
    CHECK(line.find("initialise") == std::string::npos);
    CHECK(line.find("dQ sum") == std::string::npos);
  }
  const auto from = std::find(lines.begin(), lines.end(), "kernel query_gradient 2");
  REQUIRE(lines.end() - from > 17);
  CHECK(std::vector<std::string>(from, from + 16) == lines_of(R"(
kernel query_gradient 2
load Q 0
load dO 0
load L 0
load D 0
reset 0
load K 0 0
load V 0 0
scores 0 0
mask 0 0
probabilities 0 0
probability_gradient 0 0
score_gradient 0 0
query_gradient 0 0
discard 0 0
store dQ 0
)"));
}

TEST_CASE("eager's gradients are made pass by pass, the last first, and an added mask has none of its own") {
  const auto kernels = [](unsigned bits, Pass pass, bool causal) {
    Problem p = kTiny;
    p.causal = causal;
    return kernels_for(
        {.algorithm = Algorithm::eager, .tiling = kTiles, .pass = pass, .passes = test::eager_passes(bits)},
        p);
  };
  CHECK(kernels(15, Pass::forward, true) == Names{"scores", "scale", "mask", "softmax", "dropout", "output"});
  CHECK(kernels(15, Pass::backward, true) == Names{"value_gradient", "probability_gradient",
                                                   "dropout_gradient", "score_gradient", "scale_gradient",
                                                   "query_gradient", "key_gradient"});
  CHECK(kernels(0, Pass::forward, true) == Names{"scores", "softmax", "output"});
  CHECK(kernels(0, Pass::backward, true) ==
        Names{"value_gradient", "probability_gradient", "score_gradient", "query_gradient", "key_gradient"});
  CHECK(kernels(3, Pass::forward, false) == Names{"scores", "scale", "softmax", "output"});
  CHECK(kernels(4, Pass::forward, false) == Names{"scores", "mask", "softmax", "output"});
}

TEST_CASE("a mask that is no pass of its own is part of the softmax, and a scale of the product") {
  FollowedWalk fused;
  walk(kTiny, {.algorithm = Algorithm::eager, .tiling = kTiles, .passes = {.scale = false, .mask = false}},
       fused);
  const FollowedWalk standard(Algorithm::standard, kTiny, kTiles);
  REQUIRE(fused.steps().size() == standard.steps().size());
  for (std::size_t at = 0; at < fused.steps().size(); ++at) {
    CHECK(fused.steps()[at].operation == standard.steps()[at].operation);
    CHECK(fused.steps()[at].operand == standard.steps()[at].operand);
  }
}

TEST_CASE("both passes are forward's walk and then backward's") {
  for (Method method : test::methods_of(Pass::both, kTiles, 15)) {
    CAPTURE(test::text_of(method));
    const auto both = lines_for(method);
    method.pass = Pass::forward;
    auto one_by_one = lines_for(method);
    method.pass = Pass::backward;
    for (const std::string& line : lines_for(method)) one_by_one.push_back(line);
    CHECK(both == one_by_one);
  }
}

}  // namespace
}  // namespace flashsim
