// What a measurement is asked for, from and to JSON, and laid over another.
#include "core/study/measure_request.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/study/fake_device.hpp"

namespace {

using flashsim::Algorithm;
using flashsim::CacheState;
using flashsim::CounterSource;
using flashsim::Kernel;
using flashsim::KernelChoice;
using flashsim::laid_over;
using flashsim::MeasureReport;
using flashsim::MeasureRequest;
using flashsim::NumberType;
using flashsim::read_measure_request;
using flashsim::test::FakeDevice;
using flashsim::test::hint_of;
using flashsim::test::kNoError;
using flashsim::test::measured;
using flashsim::test::message_of;
using flashsim::test::small_request;

MeasureRequest read_back(const MeasureReport& report) {
  auto request = read_measure_request(measure_json(report).dump(), "m.json");
  REQUIRE(message_of(request) == kNoError);
  return std::move(request).value();
}

std::string refused(const std::string& text) { return message_of(read_measure_request(text, "m.json")); }

}  // namespace

TEST_CASE("the JSON of a measurement repeats it") {
  FakeDevice device;
  MeasureRequest request = small_request(Kernel::standard);
  request.account.kv_seq = 77;
  request.account.causal = false;
  request.account.dtype = NumberType::bf16;
  request.account.gpu = "h100";
  request.seed = 3;
  request.magnitude = 2.5;
  request.cache = CacheState::warm;
  request.repeats = 4;
  request.counters = CounterSource::none;
  const MeasureReport first = measured(device, request);
  const MeasureReport again = measured(device, read_back(first));
  CHECK(measure_json(again)["input"] == measure_json(first)["input"]);
  CHECK(again.kernels.front().verification.output.max_abs.size ==
        first.kernels.front().verification.output.max_abs.size);
  CHECK(device.asked.repeats == 4);
  CHECK(device.asked.cache == CacheState::warm);
  CHECK(device.asked.counters == CounterSource::none);
  CHECK(again.machine.name == "h100");
}

TEST_CASE("all kernels are repeated, each in its first type where none was given") {
  FakeDevice device;
  const MeasureReport first = measured(device, small_request(std::nullopt));
  const MeasureRequest read = read_back(first);
  CHECK(read.asks_for_all());
  CHECK_FALSE(read.account.dtype.has_value());
  CHECK(measured(device, read).kernels.size() == first.kernels.size());
}

TEST_CASE("what lies over a measurement changes what followed from it") {
  FakeDevice device;
  const MeasureRequest under = read_back(measured(device, small_request(Kernel::flash_fp32)));
  MeasureRequest kernel;
  kernel.kernel = KernelChoice{Kernel::standard};
  const MeasureReport standard = measured(device, laid_over(kernel, under));
  CHECK(standard.kernels.front().kernel == Kernel::standard);
  CHECK(standard.kernels.front().plan.problem.storage == NumberType::fp16);
  CHECK(standard.kernels.front().plan.problem.seq == 200);
  MeasureRequest algorithm;
  algorithm.account.algorithm = Algorithm::standard;
  algorithm.account.seq = 60;
  const MeasureReport by_algorithm = measured(device, laid_over(algorithm, under));
  CHECK(by_algorithm.kernels.front().kernel == Kernel::standard);
  CHECK(by_algorithm.kernels.front().plan.problem.kv_seq == 60);
  MeasureRequest all;
  all.kernel = KernelChoice{};
  CHECK(measured(device, laid_over(all, under)).kernels.size() == 5);
}

TEST_CASE("a wrong input is refused with its path") {
  CHECK(refused(R"({"tile_q": 64})") == "m.json: tile_q is the kernel's own");
  CHECK(refused(R"({"kernel": "07"})") == "m.json: kernel: unknown kernel '07'");
  CHECK(refused(R"({"repeats": 0})") == "m.json: repeats must be a whole number from 1 to 10000, not 0");
  CHECK(refused(R"({"cache": "hot"})") == "m.json: cache: unknown cache state 'hot'");
  CHECK(refused(R"({"counters": "cupti"})") == "m.json: counters: unknown counter source 'cupti'");
  CHECK(refused(R"({"seed": -1})") == "m.json: seed must be at least 0, not -1");
  CHECK(refused(R"({"sed": 1})") == "m.json: unknown key sed");
  CHECK(refused(R"({"schema": "flashsim.run/1", "input": {}})") ==
        "m.json: schema must be \"flashsim.measure/1\", not \"flashsim.run/1\"");
}
