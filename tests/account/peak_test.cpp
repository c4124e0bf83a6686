#include <string>
#include <vector>

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/random_problem.hpp"

namespace flashsim {
namespace {

std::string names_of(const std::vector<Alive>& alive) {
  std::string text;
  for (const Alive& tensor : alive) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(tensor.operand));
    if (!tensor.note.empty()) text += " (" + tensor.note + ")";
  }
  return text;
}

TEST_CASE("each algorithm names what is alive at its peaks") {
  const Problem p;
  const auto intermediate = [&](Algorithm a) { return names_of(predict(a, p, {}).intermediate); };
  const auto allocated = [&](Algorithm a) { return names_of(predict(a, p, {}).allocated); };
  const std::string l(name_of(Operand::L));
  CHECK(intermediate(Algorithm::standard) == "S (P overwrites it)");
  CHECK(allocated(Algorithm::standard) == "S (P overwrites it), O");
  CHECK(intermediate(Algorithm::eager) == "S (scaled, masked), P");
  CHECK(allocated(Algorithm::eager) == "S (scaled, masked), P, O");
  CHECK(intermediate(Algorithm::flash2) == "O, " + l);
  CHECK(allocated(Algorithm::flash2) == "O, " + l);
  CHECK(intermediate(Algorithm::flash1) == "O, l, m");
  CHECK(allocated(Algorithm::flash1) == "O, l, m");
  CHECK(intermediate(Algorithm::three_pass) == "O, L");
  CHECK(allocated(Algorithm::three_pass) == "O, L");
  CHECK(intermediate(Algorithm::three_pass_stored) == "S, O, L");
  CHECK(allocated(Algorithm::three_pass_stored) == "S, O, L");
  const std::string chunks = "S (one chunk), P (one chunk), O part (of one query chunk), m part, l part";
  CHECK(intermediate(Algorithm::memory_efficient) == chunks);
  CHECK(allocated(Algorithm::memory_efficient) == "O, " + chunks);
}

TEST_CASE("the peaks are the sizes of what is alive") {
  test::RandomShapes shapes(8);
  for (int n = 0; n < 500; ++n) {
    const test::Shape shape = shapes.next(40);
    const Problem& p = shape.problem;
    const std::int64_t heads = p.batch * p.heads;
    const std::int64_t e = size_of(p.storage);
    const std::int64_t a = p.storage == NumberType::fp64 ? 8 : 4;
    const Bytes matrix(heads * p.seq * p.kv_seq * e);
    const Bytes output(heads * p.seq * p.head_dim * e);
    const Bytes statistic(heads * p.seq * a);
    const auto check = [&](Algorithm algorithm, Bytes intermediate, Bytes allocated) {
      const Prediction prediction = predict(algorithm, p, shape.tiling);
      CAPTURE(facts_of(algorithm).name, text_of(shape));
      REQUIRE(total_size(prediction.intermediate) == intermediate);
      REQUIRE(total_size(prediction.allocated) == allocated);
      REQUIRE(prediction.tally.peak_allocated == allocated);
    };
    check(Algorithm::standard, matrix, matrix + output);
    check(Algorithm::eager, matrix + matrix, matrix + matrix + output);
    check(Algorithm::flash2, output + statistic, output + statistic);
    check(Algorithm::flash1, output + statistic + statistic, output + statistic + statistic);
    check(Algorithm::three_pass, output + statistic, output + statistic);
    check(Algorithm::three_pass_stored, matrix + output + statistic, matrix + output + statistic);
    const std::int64_t rows = std::min(p.seq, shape.tiling.query_rows);
    const std::int64_t keys = std::min(p.kv_seq, shape.tiling.key_rows);
    const std::int64_t key_chunks = (p.kv_seq + shape.tiling.key_rows - 1) / shape.tiling.key_rows;
    const Bytes chunks(heads * rows * (2 * keys * e + key_chunks * (p.head_dim + 2) * a));
    check(Algorithm::memory_efficient, chunks, chunks + output);
  }
}

TEST_CASE("the measured peaks of an allocator are met: (1, 32, N, 128), fp16, causal") {
  Problem p;
  const auto peak_mib = [&](Algorithm a) {
    return static_cast<double>(predict(a, p, {}).tally.peak_allocated.value()) / (1 << 20);
  };
  CHECK(peak_mib(Algorithm::flash2) == 65);
  CHECK(peak_mib(Algorithm::eager) == 8256);
  p.seq = p.kv_seq = 32768;
  CHECK(peak_mib(Algorithm::flash2) == 260);
}

}  // namespace
}  // namespace flashsim
