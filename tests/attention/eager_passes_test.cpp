// Eager attention computes the same function whichever of its steps are passes of their own.
#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("with scale and mask fused into their neighbours eager is standard, bit for bit") {
  for (const bool causal : {true, false}) {
    const Problem p{.batch = 2,
                    .heads = 4,
                    .kv_heads = 2,
                    .seq = 19,
                    .kv_seq = 23,
                    .head_dim = 5,
                    .causal = causal,
                    .storage = NumberType::fp64};
    Inputs<double> inputs{
        Tensor4<double>(2, 4, 19, 5), Tensor4<double>(2, 2, 23, 5), Tensor4<double>(2, 2, 23, 5), {}};
    test::RandomNumbers random(5);
    for (Tensor4<double>* tensor : {&inputs.q, &inputs.k, &inputs.v}) random.fill(*tensor, 2);
    const Tiling tiles{4, 8};
    const Outputs<double> standard = attend<double>(Algorithm::standard, p, tiles, {}, inputs);
    const auto eager = [&](bool scale, bool mask) {
      const Method method{
          .algorithm = Algorithm::eager, .tiling = tiles, .passes = {.scale = scale, .mask = mask}};
      return attend<double>(p, method, {}, inputs);
    };
    CHECK(eager(false, false).o.data() == standard.o.data());
    CHECK(eager(false, true).o.data() == standard.o.data());
    for (const bool mask : {false, true}) {
      const Outputs<double> scaled = eager(true, mask);
      for (std::size_t i = 0; i < scaled.o.data().size(); ++i) {
        REQUIRE(scaled.o.data()[i] == Approx(standard.o.data()[i]).margin(1e-13));
      }
    }
  }
}

}  // namespace
}  // namespace flashsim
