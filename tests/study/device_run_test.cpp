// Runs by a kernel on a device, with the CPU in the GPU's place.
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/account/prediction.hpp"
#include "core/study/report_json.hpp"
#include "core/study/run.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/study/fake_device.hpp"
#include "tests/study/runs.hpp"

namespace {

using flashsim::Algorithm;
using flashsim::Fault;
using flashsim::Kernel;
using flashsim::NumberType;
using flashsim::plan_run;
using flashsim::run_json;
using flashsim::RunDevice;
using flashsim::RunReport;
using flashsim::RunRequest;
using flashsim::Verdict;
using flashsim::test::FakeDevice;
using flashsim::test::hint_of;
using flashsim::test::kNoError;
using flashsim::test::message_of;

RunRequest device_request() {
  RunRequest request;
  request.account.seq = 150;
  request.account.heads = 2;
  request.account.head_dim = 16;
  request.device = RunDevice::cuda;
  return request;
}

RunReport ran_on(FakeDevice& device, const RunRequest& request) {
  const auto backend = device.backend();
  auto report = make_run(flashsim::test::planned(request), {}, &backend);
  REQUIRE(message_of(report) == kNoError);
  return std::move(report).value();
}

}  // namespace

TEST_CASE("a run on a device executes the algorithm's kernel on its own tiles, in fp32") {
  FakeDevice device;
  RunRequest request = device_request();
  RunReport report = ran_on(device, request);
  CHECK(report.plan.kernel == Kernel::flash_fp32);
  CHECK(report.plan.tiling.query_rows == 128);
  CHECK(report.plan.tiling.key_rows == 64);
  CHECK(report.plan.problem.storage == NumberType::fp32);
  CHECK(report.verdict == Verdict::right);
  CHECK(report.forward.seconds.value == 3e-3);
  CHECK(report.device->name == "NVIDIA H200");
  request.account.algorithm = Algorithm::standard;
  report = ran_on(device, request);
  CHECK(report.plan.kernel == Kernel::standard);
  CHECK(device.task.kernel == Kernel::standard);
}

TEST_CASE("what a device run moves is the prediction, and it isn't said to have been counted") {
  FakeDevice device;
  const RunReport report = ran_on(device, device_request());
  CHECK_FALSE(report.forward.counted.has_value());
  CHECK_FALSE(report.predicted_equals_counted().has_value());
  CHECK(report.forward.tally().hbm_total().total() ==
        flashsim::predict(report.plan.problem, report.plan.method()).tally.hbm_total().total());
  const auto json = run_json(report);
  CHECK(json["result"]["predicted_equals_counted"].is_null());
  CHECK(json["result"]["device"]["driver"] == "580.159.04");
  CHECK(json["input"]["device"] == "cuda");
  CHECK(json["input"]["kernel"] == "03_flash_fp32");
}

TEST_CASE("every switch reaches the device, and what it breaks is told as for the CPU") {
  FakeDevice device;
  RunRequest request = device_request();
  request.magnitude = 30;
  request.no_rescale = true;
  const RunReport broken = ran_on(device, request);
  CHECK_FALSE(device.task.switches.rescale);
  CHECK(broken.verdict == Verdict::broken);
  CHECK_FALSE(broken.why.empty());
  REQUIRE(broken.first_fault.has_value());
  CHECK(broken.first_fault->key_tile.has_value());
  request.no_rescale = false;
  request.fault = Fault::reset_per_tile;
  CHECK(ran_on(device, request).verdict == Verdict::broken);
  CHECK(device.task.switches.fault == Fault::reset_per_tile);
}

TEST_CASE("a fault that the device alone has is told by its own value, and no key tile") {
  FakeDevice device;
  device.spoil = [](flashsim::DeviceOutputs& out) { out.o[140 * 16 + 3] = 9; };
  const RunReport report = ran_on(device, device_request());
  CHECK(report.verdict == Verdict::wrong);
  REQUIRE(report.first_fault.has_value());
  CHECK(report.first_fault->place.row == 140);
  CHECK(report.first_fault->query_tile == 1);
  CHECK_FALSE(report.first_fault->key_tile.has_value());
  CHECK(report.first_fault->got == 9);
}

TEST_CASE("the JSON of a device run repeats it, and other options lie over it") {
  FakeDevice device;
  RunRequest request = device_request();
  request.kernel = Kernel::standard;
  request.seed = 7;
  request.account.dtype = NumberType::bf16;
  const RunReport first = ran_on(device, request);
  const auto read = flashsim::read_run_request(run_json(first).dump(), "r.json");
  REQUIRE(message_of(read) == kNoError);
  const RunReport again = ran_on(device, *read);
  CHECK(again.plan.kernel == Kernel::standard);
  CHECK(flashsim::test::numbers_of(first) == flashsim::test::numbers_of(again));

  RunRequest on_cpu;
  on_cpu.device = RunDevice::cpu;
  const auto cpu = plan_run(laid_over(on_cpu, *read));
  REQUIRE(message_of(cpu) == kNoError);
  CHECK_FALSE(cpu->kernel.has_value());
  CHECK(cpu->algorithm == Algorithm::standard);
  RunRequest other;
  other.kernel = Kernel::flash_fp32;
  other.account.dtype = NumberType::fp32;
  const auto flash = plan_run(laid_over(other, *read));
  REQUIRE(message_of(flash) == kNoError);
  CHECK(flash->algorithm == Algorithm::flash2);
  RunRequest algorithm;
  algorithm.account.algorithm = Algorithm::flash2;
  algorithm.account.dtype = NumberType::fp32;
  const auto by_algorithm = plan_run(laid_over(algorithm, *read));
  REQUIRE(message_of(by_algorithm) == kNoError);
  CHECK(by_algorithm->kernel == Kernel::flash_fp32);
}

TEST_CASE("a CPU run laid over by a device takes the kernel's tiles") {
  RunRequest cpu = device_request();
  cpu.device = RunDevice::cpu;
  cpu.account.tiles = {32, 32};
  const RunReport report = flashsim::test::ran(cpu);
  const auto read = flashsim::read_run_request(run_json(report).dump(), "r.json");
  REQUIRE(message_of(read) == kNoError);
  RunRequest device;
  device.device = RunDevice::cuda;
  const auto plan = plan_run(laid_over(device, *read));
  REQUIRE(message_of(plan) == kNoError);
  CHECK(plan->tiling.query_rows == 128);
}

TEST_CASE("what a device run doesn't take is refused by name") {
  const auto refused = [](const auto& change) {
    RunRequest request = device_request();
    change(request);
    return message_of(plan_run(request));
  };
  CHECK(refused([](RunRequest& r) { r.kernel = Kernel::flash_backward; }) ==
        "06_flash_backward makes gradients, and --backward isn't given");
  CHECK(refused([](RunRequest& r) {
          r.kernel = Kernel::flash_fp32;
          r.backward = true;
        }) == "--kernel is 03_flash_fp32, and gradients are made of the O and L of 04_flash_tensor");
  CHECK(refused([](RunRequest& r) {
          r.backward = true;
          r.account.dtype = NumberType::fp32;
        }) == "06_flash_backward takes fp16, bf16, not fp32");
  CHECK(refused([](RunRequest& r) {
          r.backward = true;
          r.account.head_dim = 130;
        }) == "06_flash_backward takes head dimensions up to 128, not 130");
  CHECK(refused([](RunRequest& r) {
          r.backward = true;
          r.fault = Fault::finite_mask;
        }) == "06_flash_backward isn't built with a part switched off or broken");
  CHECK(refused([](RunRequest& r) {
          r.backward = true;
          r.account.algorithm = Algorithm::split_kv;
        }) == "no kernel realises split-kv backward");
  CHECK(refused([](RunRequest& r) { r.account.deterministic = true; }) ==
        "--deterministic says how gradients are made, and --backward isn't given");
  CHECK(refused([](RunRequest& r) {
          r.kernel = Kernel::flash_split_kv;
          r.fault = Fault::finite_mask;
        }) == "05_flash_split_kv isn't built with a part switched off or broken");
  CHECK(refused([](RunRequest& r) { r.compute = NumberType::fp64; }) ==
        "--compute is f64, and kernels compute in f32");
  CHECK(refused([](RunRequest& r) {
          r.kernel = Kernel::flash_fp32;
          r.account.dtype = NumberType::fp16;
        }) == "03_flash_fp32 takes fp32, not fp16");
  CHECK(refused([](RunRequest& r) { r.accumulate_in_storage = true; }) ==
        "--accumulate is storage, and kernels sum in f32");
  CHECK(refused([](RunRequest& r) { r.account.algorithm = Algorithm::flash1; }) ==
        "no kernel realises flash1");
  CHECK(refused([](RunRequest& r) { r.account.tiles.key_rows = 128; }) ==
        "--tile-k is 128, and 03_flash_fp32 works on tiles of 128×64");
  CHECK(refused([](RunRequest& r) { r.account.head_dim = 257; }) ==
        "03_flash_fp32 takes head dimensions up to 256, not 257");
  CHECK(refused([](RunRequest& r) {
          r.account.seq.reset();
          r.account.heads.reset();
          r.account.head_dim.reset();
          r.scenario = flashsim::find_scenario("max-changes").value();
        }) == "a kernel needs Q and K, and scenario max-changes gives scores in their place");
  RunRequest cpu = device_request();
  cpu.device.reset();
  cpu.kernel = Kernel::standard;
  CHECK(message_of(plan_run(cpu)) == "--kernel is 01_standard, and the run is on the CPU");
  CHECK(hint_of(plan_run(cpu)) == "--device cuda");
  cpu.kernel.reset();
  cpu.backward = true;
  cpu.account.deterministic = true;
  CHECK(message_of(plan_run(cpu)) ==
        "--deterministic is a choice of kernels, and the run is on the CPU, whose bits are always the same");
}

TEST_CASE("a device run in a narrow type takes the first kernel that does, and one by name its first type") {
  FakeDevice device;
  RunRequest request = device_request();
  request.account.dtype = NumberType::fp16;
  CHECK(ran_on(device, request).plan.kernel == Kernel::flash_tensor);
  CHECK(device.task.method.tiling.key_rows == 128);
  request.account.dtype.reset();
  request.kernel = Kernel::flash_tensor;
  const RunReport report = ran_on(device, request);
  CHECK(report.plan.problem.storage == NumberType::fp16);
  CHECK(report.verdict == Verdict::right);
}

TEST_CASE("split-kv runs on a device in the parts that fill it, or in as many as are asked for") {
  FakeDevice device;
  RunRequest request = device_request();
  request.account.algorithm = Algorithm::split_kv;
  request.account.seq = 2;
  request.account.kv_seq = 900;
  const RunReport chosen = ran_on(device, request);
  CHECK(chosen.plan.kernel == Kernel::flash_split_kv);
  CHECK(chosen.verdict == Verdict::right);
  CHECK(chosen.plan.gpu == "h200-measured");
  CHECK(chosen.plan.splits->sms == flashsim::find_machine("h200-measured")->sms);
  CHECK(device.task.method.splits == chosen.plan.splits->splits);
  CHECK(chosen.forward.predicted.hbm_total().total() ==
        flashsim::predict(chosen.plan.problem, chosen.plan.method()).tally.hbm_total().total());
  CHECK(run_json(chosen)["input"]["splits"] == "auto");
  request.account.gpu = "a100";
  CHECK(ran_on(device, request).plan.splits->sms == 108);
  request.account.splits = flashsim::SplitsRequest{3};
  CHECK(ran_on(device, request).plan.method().splits == 3);
  CHECK(device.task.method.splits == 3);
}

TEST_CASE("gradients on a device: 04 forward, 06 backward, each with its own tiles and prediction") {
  FakeDevice device;
  RunRequest request = device_request();
  request.account.heads = 4;
  request.account.kv_heads = 2;
  request.backward = true;
  const RunReport report = ran_on(device, request);
  CHECK(device.executed == 2);
  CHECK(device.task.kernel == Kernel::flash_backward);
  CHECK(device.task.method.pass == flashsim::Pass::backward);
  CHECK_FALSE(device.task.method.deterministic);
  CHECK(report.plan.kernel == Kernel::flash_tensor);
  CHECK(report.plan.problem.storage == NumberType::fp16);
  CHECK(report.verdict == Verdict::right);
  CHECK(report.forward.seconds.value == 3e-3);
  REQUIRE(report.backward.has_value());
  CHECK(report.backward->seconds.value == 8e-3);
  CHECK_FALSE(report.backward->counted.has_value());
  CHECK(report.backward->tally().hbm_total().total() ==
        flashsim::predict(report.plan.problem, device.task.method).tally.hbm_total().total());
  REQUIRE(report.gradient_verification.has_value());
  CHECK(report.gradient_verification->agrees());
  const auto json = run_json(report);
  CHECK(json["input"]["kernel"] == "06_flash_backward");
  CHECK(json["input"]["deterministic"] == false);
  CHECK(json["result"]["backward"]["seconds"] == 8e-3);

  const auto read = flashsim::read_run_request(json.dump(), "r.json");
  REQUIRE(message_of(read) == kNoError);
  CHECK(flashsim::test::numbers_of(ran_on(device, *read)) == flashsim::test::numbers_of(report));
  RunRequest over;
  over.account.deterministic = true;
  const RunReport same_bits = ran_on(device, laid_over(over, *read));
  CHECK(device.task.method.deterministic);
  CHECK(run_json(same_bits)["input"]["deterministic"] == true);
  RunRequest on_cpu;
  on_cpu.device = RunDevice::cpu;
  const auto again = flashsim::read_run_request(run_json(same_bits).dump(), "r.json");
  REQUIRE(message_of(again) == kNoError);
  CHECK(message_of(plan_run(laid_over(on_cpu, *again))) == kNoError);
}

TEST_CASE("a gradient that the device has wrong makes the run wrong") {
  FakeDevice device;
  device.spoil = [](flashsim::DeviceOutputs& out) {
    if (!out.d_v.empty()) out.d_v[40] += 2;
  };
  RunRequest request = device_request();
  request.backward = true;
  const RunReport report = ran_on(device, request);
  CHECK(report.verdict == Verdict::wrong);
  CHECK(report.verification.agrees());
  CHECK_FALSE(report.gradient_verification->dv.agrees());
  CHECK(report.gradient_verification->dq.agrees());
}

TEST_CASE("a scenario with Q, K and V runs on a device, and without one it is said why not") {
  FakeDevice device;
  RunRequest request;
  request.device = RunDevice::cuda;
  request.scenario = flashsim::find_scenario("three-token").value();
  const RunReport report = ran_on(device, request);
  CHECK(report.verdict == Verdict::right);
  CHECK(report.plan.tiling.query_rows == 128);
  device.no_device = flashsim::Error{"no GPU", ""};
  const auto backend = device.backend();
  CHECK(message_of(make_run(flashsim::test::planned(request), {}, &backend)) == "no GPU");
}
