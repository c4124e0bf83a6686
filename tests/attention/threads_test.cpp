// However many threads share the work, the result has the same bits. The thread sanitizer runs these.
#include <string>

#include "tests/attention/ways.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

using test::drawn_inputs;
using test::RandomNumbers;
using test::same_bits;
using test::Way;

constexpr int kThreads[] = {2, 3, 8, 100};

/// Ragged tiles, several heads to a key/value head, and rows that see nothing.
template <class T>
Problem shared_work() {
  return {.batch = 2,
          .heads = 4,
          .kv_heads = 2,
          .seq = 45,
          .kv_seq = 37,
          .head_dim = 9,
          .storage = test::number_type<T>()};
}

/// The ways and numbers of threads that give other bits than one thread does, or "".
template <class T, class Same>
std::string unlike_one_thread(const std::vector<Way>& all, const Same& same) {
  std::string text;
  for (const Way& way : all) {
    for (const int threads : kThreads) {
      if (!same(way, threads)) {
        text +=
            fmt::format("{} in {} on {} threads\n", text_of(way), name_of(test::number_type<T>()), threads);
      }
    }
  }
  return text;
}

template <class T>
std::string forward_unlike_one_thread() {
  RandomNumbers random(17);
  const Problem problem = shared_work<T>();
  const Inputs<T> inputs = converted<T>(drawn_inputs(problem, random, 2));
  const auto attended = [&](const Way& way, int threads) {
    return attend<T>(way.algorithm, problem, way.tiling, {}, inputs, {.threads = threads});
  };
  return unlike_one_thread<T>(test::ways({{8, 8}, {16, 3}}), [&](const Way& way, int threads) {
    return same_bits(attended(way, threads), attended(way, 1));
  });
}

template <class T>
std::string backward_unlike_one_thread() {
  RandomNumbers random(18);
  const Problem problem = shared_work<T>();
  const Inputs<double> drawn = drawn_inputs(problem, random, 2);
  const Inputs<T> inputs = converted<T>(drawn);
  Tensor4<double> d_o = drawn.q;  // O's shape
  random.fill(d_o, 2);
  const Tensor4<T> d_o_t = converted_tensor<T>(d_o);
  const auto gradients = [&](const Way& way, int threads) {
    const Outputs<T> outputs = attend<T>(way.algorithm, problem, way.tiling, {}, inputs);
    return attend_backward<T>(way.algorithm, problem, way.tiling, {}, inputs, outputs, d_o_t,
                              {.threads = threads});
  };
  const std::vector<Way> all{{Algorithm::standard, {8, 8}},
                             {Algorithm::flash2, {8, 8}},
                             {Algorithm::flash2, {16, 3}},
                             {Algorithm::flash2, {3, 16}}};
  return unlike_one_thread<T>(all, [&](const Way& way, int threads) {
    const Gradients<T> several = gradients(way, threads);
    const Gradients<T> one = gradients(way, 1);
    return same_bits(several.dq, one.dq) && same_bits(several.dk, one.dk) && same_bits(several.dv, one.dv);
  });
}

TEST_CASE("the number of threads changes no bit of O and L", "[threads]") {
  CHECK(forward_unlike_one_thread<float>() == "");
  CHECK(forward_unlike_one_thread<double>() == "");
}

TEST_CASE("the number of threads changes no bit of the gradients", "[threads]") {
  CHECK(backward_unlike_one_thread<float>() == "");
  CHECK(backward_unlike_one_thread<double>() == "");
}

}  // namespace
}  // namespace flashsim
