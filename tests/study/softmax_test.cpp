// The report on softmax by itself: what is chosen, what is shown, errors planted and found.
#include "core/study/softmax.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"

namespace flashsim {
namespace {

using test::message_of;

SoftmaxReport report_of(const SoftmaxRequest& request) {
  auto report = make_softmax(request);
  REQUIRE(message_of(report) == test::kNoError);
  return std::move(report).value();
}

TEST_CASE("the ways that select show where something is to be selected") {
  CHECK(report_of({}).ways.size() == 3);
  CHECK(report_of({.top_k = 5}).ways.size() == kSoftmaxWays.size());
}

TEST_CASE("a row fits by the shared memory of the GPU, or the one that was given") {
  CHECK(report_of({.columns = 83456}).chip.fits());  // 163 KiB in fp16
  CHECK_FALSE(report_of({.columns = 83457}).chip.fits());
  CHECK_FALSE(report_of({.columns = 83456, .gpu = "rtx-4090"}).chip.fits());
  CHECK(report_of({.columns = 50, .shared_memory = Bytes(100)}).chip.fits());
  CHECK_FALSE(report_of({.columns = 51, .shared_memory = Bytes(100)}).chip.fits());
}

TEST_CASE("naive overflows where exp(x) leaves the type that sums are kept in") {
  const NaiveLimits single = report_of({.columns = 1000}).naive;
  CHECK(single.accumulation == NumberType::fp32);
  CHECK(std::isfinite(std::exp(static_cast<float>(single.largest - 1e-3))));
  CHECK(std::isinf(std::exp(static_cast<float>(single.largest + 1e-3))));
  const auto sum = [](double x) {
    float total = 0;
    for (int i = 0; i < 1000; ++i) total += std::exp(static_cast<float>(x));
    return total;
  };
  CHECK(std::isfinite(sum(single.largest_even - 0.01)));
  CHECK(std::isinf(sum(single.largest_even + 0.01)));
  CHECK(std::exp(static_cast<float>(single.smallest + 0.01)) > 0);
  CHECK(std::exp(static_cast<float>(single.smallest - 0.01)) == 0);
  const NaiveLimits twice = report_of({.dtype = NumberType::fp64}).naive;
  CHECK(twice.accumulation == NumberType::fp64);
  CHECK(std::fabs(twice.largest - 709.78) < 0.01);
}

TEST_CASE("one byte, exponential or step too many in a closed form is reported") {
  static void (*change)(SoftmaxTally&) = nullptr;
  const auto changed = [](void (*how)(SoftmaxTally&)) {
    change = how;
    const auto report = make_softmax({.rows = 3, .columns = 50, .top_k = 2, .shared_memory = Bytes(64)},
                                     [](SoftmaxWay way, const SoftmaxProblem& p, const RowsOnChip& chip) {
                                       SoftmaxPrediction prediction = predict_softmax(way, p, chip);
                                       if (way == SoftmaxWay::online) change(prediction.tally);
                                       return prediction;
                                     });
    REQUIRE(report);
    CHECK(report->predicted_equals_counted() == false);
    std::string figures;
    for (const SoftmaxAccount& account : report->ways) {
      for (const Discrepancy& d : account.discrepancies) figures += d.figure + " ";
    }
    return figures;
  };
  CHECK(changed([](SoftmaxTally& t) { t.input.read += Bytes(1); }) == "input.read_bytes total.read_bytes ");
  CHECK(changed([](SoftmaxTally& t) { t.output.written += Bytes(1); }) ==
        "output.write_bytes total.write_bytes ");
  CHECK(changed([](SoftmaxTally& t) { t.results.written += Bytes(1); }) ==
        "results.write_bytes total.write_bytes ");
  CHECK(changed([](SoftmaxTally& t) { t.exponentials += 1; }) == "exponentials ");
  CHECK(changed([](SoftmaxTally& t) { t.passes += 1; }) == "passes ");
  CHECK(changed([](SoftmaxTally& t) { t.kernels += 1; }) == "kernels ");
  CHECK(changed([](SoftmaxTally& t) { t.steps += 1; }) == "steps ");
}

TEST_CASE("a long walk is predicted and not counted, unless that is asked for") {
  SoftmaxRequest request{.rows = 1, .columns = 400'000, .shared_memory = Bytes(2)};
  const SoftmaxReport report = report_of(request);
  CHECK(report.predicted_equals_counted() == std::nullopt);
  CHECK_FALSE(report.ways[0].counted);
  request.count_always = true;
  CHECK(report_of(request).predicted_equals_counted() == true);
}

TEST_CASE("what a report says it was asked makes it again") {
  const SoftmaxReport report = report_of({.rows = 7,
                                          .columns = 90,
                                          .top_k = 3,
                                          .dtype = NumberType::bf16,
                                          .shared_memory = Bytes(100),
                                          .gpu = "l4"});
  const auto json = softmax_json(report);
  const auto request = read_softmax_request(json.dump(), "r.json");
  REQUIRE(message_of(request) == test::kNoError);
  CHECK(softmax_json(report_of(*request)) == json);
  // Another GPU has its own shared memory.
  const SoftmaxReport other = report_of(laid_over({.columns = 91, .gpu = "h100"}, *request));
  CHECK(other.shared_memory == other.machine.shared_memory_per_block);
  CHECK(other.problem.columns == 91);
  CHECK(other.problem.rows == 7);
}

TEST_CASE("counts that leave 64 bits, and keys that nobody asked for, are refused") {
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(message_of(make_softmax({.rows = huge, .columns = huge})) ==
        "a count of softmax over 1099511627776 × 1099511627776 leaves 64 bits");
  CHECK_FALSE(message_of(read_softmax_request(R"({"row": 3})", "r.json")) == test::kNoError);
  CHECK_FALSE(message_of(read_softmax_request(R"({"sram_bytes": 0})", "r.json")) == test::kNoError);
}

}  // namespace
}  // namespace flashsim
