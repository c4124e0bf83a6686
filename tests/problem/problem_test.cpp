#include "core/problem/problem.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::hint_of;
using test::kNoError;
using test::message_of;

TEST_CASE("the problem that nothing is said about is the worked example") {
  const Problem p;
  CHECK(shape_text(p) == "B 1 · H 32 · N 8192 · d 128");
  CHECK(p.kv_heads == 32);
  CHECK(p.kv_seq == 8192);
  CHECK(p.causal);
  CHECK(p.alignment == CausalAlignment::bottom_right);
  CHECK(p.storage == NumberType::fp16);
  CHECK(p.score_scale() == 1 / std::sqrt(128.0));
  CHECK(message_of(p.validate()) == kNoError);
}

TEST_CASE("every dimension is a whole number from 1 to 2^40") {
  for (const auto& [name, member] : {std::pair{"batch", &Problem::batch},
                                     {"heads", &Problem::heads},
                                     {"kv-heads", &Problem::kv_heads},
                                     {"seq", &Problem::seq},
                                     {"kv-seq", &Problem::kv_seq},
                                     {"head-dim", &Problem::head_dim}}) {
    for (const char* wrong : {"0", "-5", "1099511627777"}) {
      Problem p;
      p.*member = std::stoll(wrong);
      CHECK(message_of(p.validate()) ==
            std::string(name) + " must be a whole number from 1 to 1099511627776, not " + wrong);
    }
  }
}

TEST_CASE("three query heads can't share two key/value heads") {
  const Problem p{.heads = 3, .kv_heads = 2};
  CHECK(message_of(p.validate()) == "3 query heads can't share 2 key/value heads evenly");
  CHECK(hint_of(p.validate()) ==
        "the number of query heads must be a multiple of the number of key/value heads");
  CHECK(message_of(Problem{.heads = 2, .kv_heads = 4}.validate()) ==
        "2 query heads can't share 4 key/value heads evenly");
}

TEST_CASE("neighbouring query heads share a key/value head") {
  const Problem p{.heads = 4, .kv_heads = 2};
  for (const auto& [head, kv_head] : {std::pair{0, 0}, {1, 0}, {2, 1}, {3, 1}})
    CHECK(p.kv_head_of(head) == kv_head);
  const Problem one{.heads = 4, .kv_heads = 1};
  const Problem all{.heads = 4, .kv_heads = 4};
  for (int head = 0; head < 4; ++head) {
    CHECK(one.kv_head_of(head) == 0);
    CHECK(all.kv_head_of(head) == head);
  }
}

TEST_CASE("the scale is one over the root of d, unless it is given") {
  CHECK(Problem{.head_dim = 64}.score_scale() == 0.125);
  CHECK(Problem{.head_dim = 64, .scale = 1.0}.score_scale() == 1.0);
}

TEST_CASE("a shape names key/value heads and length where they differ") {
  const Problem p{.batch = 2, .heads = 8, .kv_heads = 2, .seq = 1, .kv_seq = 4096, .head_dim = 64};
  CHECK(shape_text(p) == "B 2 · H 8 · Hkv 2 · N 1 · Nkv 4096 · d 64");
}

TEST_CASE("types and alignments are found by their names and by no other") {
  CHECK(storage_type_named("--dtype", "bf16").value() == NumberType::bf16);
  CHECK(message_of(storage_type_named("--dtype", "fp17")) == "unknown --dtype 'fp17'");
  CHECK(hint_of(storage_type_named("--dtype", "fp61")) ==
        "did you mean 'fp16'? known: fp8, fp16, bf16, fp32, fp64");
  CHECK(causal_alignment_named("bottom-right").value() == CausalAlignment::bottom_right);
  CHECK(causal_alignment_named("top-left").value() == CausalAlignment::top_left);
  CHECK(message_of(causal_alignment_named("topleft")) == "unknown causal alignment 'topleft'");
  CHECK(hint_of(causal_alignment_named("topleft")) ==
        "did you mean 'top-left'? known: bottom-right, top-left");
}

}  // namespace
}  // namespace flashsim
