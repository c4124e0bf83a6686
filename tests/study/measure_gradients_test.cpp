// Measurements of the upper rungs, split-kv and the backward pass, with the CPU in the GPU's place.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/account/inputs.hpp"
#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/study/fake_device.hpp"

namespace {

using flashsim::Algorithm;
using flashsim::ByteFigureKind;
using flashsim::Bytes;
using flashsim::Kernel;
using flashsim::KernelChoice;
using flashsim::KernelReport;
using flashsim::make_measurement;
using flashsim::MeasureReport;
using flashsim::MeasureRequest;
using flashsim::NumberType;
using flashsim::Pass;
using flashsim::SplitsRequest;
using flashsim::Verdict;
using flashsim::test::FakeDevice;
using flashsim::test::hint_of;
using flashsim::test::kNoError;
using flashsim::test::measured;
using flashsim::test::message_of;
using flashsim::test::modelled_device;
using flashsim::test::small_request;

/// Three queries over 1000 keys, two query heads in a group.
MeasureRequest decoding() {
  MeasureRequest request = small_request(Kernel::flash_split_kv);
  request.account.heads = 4;
  request.account.kv_heads = 2;
  request.account.seq = 3;
  request.account.kv_seq = 1000;
  return request;
}

MeasureRequest training(bool deterministic = false) {
  MeasureRequest request = small_request(Kernel::flash_backward);
  request.account.heads = 4;
  request.account.kv_heads = 2;
  request.account.deterministic = deterministic;
  return request;
}

MeasureRequest read_back(const MeasureReport& report) {
  auto request = flashsim::read_measure_request(measure_json(report).dump(), "m.json");
  REQUIRE(message_of(request) == kNoError);
  return std::move(request).value();
}

std::string refused(const MeasureRequest& request) {
  FakeDevice device;
  const auto report = make_measurement(request, device.backend());
  CHECK(device.executed == 0);
  return message_of(report) + " | " + hint_of(report);
}

}  // namespace

TEST_CASE("split-kv is measured with the parts that fill the machine, and those are the account's") {
  FakeDevice device = modelled_device(decoding());
  const MeasureReport report = measured(device, decoding());
  const KernelReport& k = report.kernels.front();
  CHECK(k.verdict == Verdict::right);
  CHECK(k.differences.empty());
  REQUIRE(k.account.splits.has_value());
  const auto choice =
      flashsim::choose_splits(k.plan.problem, k.account.method.tiling, report.machine.sms, {});
  CHECK(choice.splits > 1);
  CHECK(k.account.splits->splits == choice.splits);
  CHECK(k.account.splits->automatic);
  CHECK(device.task.method.splits == choice.splits);
  CHECK(device.task.method.algorithm == Algorithm::split_kv);
  CHECK(k.plan.method().splits == choice.splits);
  // Two heads of three queries in a tile.
  CHECK(device.task.method.tiling.query_rows == 16);
  const Bytes parts(choice.splits * 4 * 3 * (64 + 1) * 4);
  const Bytes o_and_l(std::int64_t{4} * 3 * (64 * 2 + 4));
  CHECK(k.figure(ByteFigureKind::peak_memory).model == parts + o_and_l);
  REQUIRE(k.measurement->kernels.size() == 2);
  CHECK(k.measurement->kernels[0].name == "attention");
  CHECK(k.measurement->kernels[1].name == "combine");
}

TEST_CASE("so many parts as are asked for, and one leaves nothing to combine") {
  FakeDevice device;
  MeasureRequest request = decoding();
  request.account.splits = SplitsRequest{3};
  MeasureReport report = measured(device, request);
  CHECK(device.task.method.splits == 3);
  CHECK(report.kernels.front().account.method.splits == 3);
  CHECK(measure_json(report)["input"]["splits"] == 3);
  CHECK(measure_json(report)["result"]["kernels"][0]["splits"] == 3);
  CHECK(measured(device, read_back(report)).kernels.front().account.method.splits == 3);
  request.account.splits = SplitsRequest{1};
  report = measured(device, request);
  CHECK(report.kernels.front().account.kernels.size() == 1);
  request.account.splits = SplitsRequest{};
  report = measured(device, request);
  CHECK(device.task.method.splits > 3);
  CHECK(measure_json(report)["input"]["splits"] == "auto");
  CHECK(read_back(report).account.splits->count == std::nullopt);
}

TEST_CASE("gradients are measured beside the account of the backward pass, whose inputs are O, L and dO") {
  for (const bool deterministic : {false, true}) {
    FakeDevice device = modelled_device(training(deterministic));
    const MeasureReport report = measured(device, training(deterministic));
    const KernelReport& k = report.kernels.front();
    INFO("deterministic " << deterministic);
    CHECK(report.right());
    CHECK(k.verdict == Verdict::right);
    CHECK(k.differences.empty());
    CHECK(k.account.method.pass == Pass::backward);
    CHECK(k.account.method.deterministic == deterministic);
    CHECK(device.task.method.pass == Pass::backward);
    CHECK(device.task.method.deterministic == deterministic);
    CHECK(device.task.method.tiling.query_rows == 64);
    CHECK(device.task.method.tiling.key_rows == 128);
    REQUIRE(k.gradient_verification.has_value());
    CHECK(k.gradient_verification->agrees());
    CHECK(k.gradient_verification->dk.rows == 2 * 200);
    const auto tally = flashsim::predict(k.plan.problem, k.account.method).tally;
    CHECK(k.figure(ByteFigureKind::sm_read).model == tally.sm_total().read);
    // dQ, dK, dV and D; dQ's sum where blocks add to it. L is an input here.
    const std::int64_t queries = 4 * 200 * 64;
    const std::int64_t keys = 2 * 200 * 64;
    const std::int64_t sum = deterministic ? 0 : queries * 4;
    CHECK(k.figure(ByteFigureKind::peak_memory).model ==
          Bytes(queries * 2 + 2 * keys * 2 + 4 * 200 * 4 + sum));
    const auto json = measure_json(report);
    CHECK(json["input"]["pass"] == "backward");
    CHECK(json["input"]["deterministic"] == deterministic);
    CHECK(json["result"]["kernels"][0]["pass"] == "backward");
    CHECK(json["result"]["kernels"][0]["tile_k"] == 128);
    CHECK(json["result"]["kernels"][0]["gradient_verification"]["rows_wrong_dk"] == 0);
  }
}

TEST_CASE("the task's method is the account's, of every kernel") {
  FakeDevice device;
  for (const flashsim::KernelFacts& facts : flashsim::kKernels) {
    const MeasureReport report = measured(device, small_request(facts.kernel));
    const flashsim::Method& of_account = report.kernels.front().account.method;
    const flashsim::Method& of_task = device.task.method;
    INFO(facts.name);
    CHECK(of_task.algorithm == of_account.algorithm);
    CHECK(of_task.pass == facts.pass);
    CHECK(of_task.splits == of_account.splits);
    CHECK(of_task.tiling.query_rows == of_account.tiling.query_rows);
    const auto own = flashsim::method_of(facts.kernel, report.kernels.front().plan.problem);
    CHECK(of_task.tiling.query_rows == own.tiling.query_rows);
    CHECK(of_task.tiling.key_rows == own.tiling.key_rows);
  }
}

TEST_CASE("a wrong gradient is not timed, and told by tensor and place; so is a wrong O beneath it") {
  FakeDevice device;
  const auto check = [&](const char* tensor, const char* section) {
    const MeasureReport report = measured(device, training());
    const KernelReport& k = report.kernels.front();
    CHECK(k.verdict == Verdict::wrong);
    CHECK_FALSE(report.right());
    CHECK_FALSE(k.measurement.has_value());
    const auto entry = measure_json(report)["result"]["kernels"][0];
    CHECK(entry[section]["first_wrong"]["tensor"] == tensor);
    CHECK(entry["measurement"].is_null());
    return entry[section]["first_wrong"]["at"];
  };
  device.spoil = [](flashsim::DeviceOutputs& out) { out.d_k[130 * 64 + 7] += 1; };
  const auto at = check("dK", "gradient_verification");
  CHECK(at["row"] == 130);
  CHECK(at["column"] == 7);
  device.spoil = [](flashsim::DeviceOutputs& out) { out.d_v[3] = std::numeric_limits<float>::quiet_NaN(); };
  check("dV", "gradient_verification");
  device.spoil = [](flashsim::DeviceOutputs& out) { out.d_q[5] += 1; };
  check("dQ", "gradient_verification");
  device.spoil = [](flashsim::DeviceOutputs& out) { out.o[5] += 1; };
  check("O", "verification");
  CHECK(device.measured == 0);
  device.spoil = [](flashsim::DeviceOutputs& out) { out.d_v.clear(); };
  CHECK(message_of(make_measurement(training(), device.backend())) ==
        "the device gave 0 numbers of dV, not 25600");
}

TEST_CASE("the pass and the algorithm choose the first kernel that takes the type") {
  FakeDevice device;
  const auto chosen = [&](const auto& change) {
    MeasureRequest request = small_request();
    request.kernel.reset();
    change(request.account);
    return measured(device, request).kernels.front().kernel;
  };
  using Account = flashsim::AccountRequest;
  CHECK(chosen([](Account&) {}) == Kernel::flash_fp32);
  CHECK(chosen([](Account& a) { a.dtype = NumberType::fp16; }) == Kernel::flash_tensor);
  CHECK(chosen([](Account& a) { a.dtype = NumberType::fp32; }) == Kernel::flash_fp32);
  CHECK(chosen([](Account& a) { a.algorithm = Algorithm::split_kv; }) == Kernel::flash_split_kv);
  CHECK(chosen([](Account& a) { a.algorithm = Algorithm::standard; }) == Kernel::standard);
  CHECK(chosen([](Account& a) { a.pass = Pass::backward; }) == Kernel::flash_backward);
  CHECK(chosen([](Account& a) { a.pass = Pass::forward; }) == Kernel::flash_fp32);
}

TEST_CASE("all kernels are those of the pass, and what means nothing for one isn't asked of it") {
  FakeDevice device;
  MeasureRequest request = small_request(std::nullopt);
  request.account.splits = SplitsRequest{2};
  const MeasureReport forward = measured(device, request);
  REQUIRE(forward.kernels.size() == 5);
  CHECK(forward.left_out.empty());
  CHECK(forward.kernels[4].kernel == Kernel::flash_split_kv);
  CHECK(forward.kernels[4].account.method.splits == 2);
  CHECK(measure_json(forward)["input"]["splits"] == 2);
  request.account.splits.reset();
  request.account.pass = Pass::backward;
  request.account.deterministic = true;
  const MeasureReport backward = measured(device, request);
  REQUIRE(backward.kernels.size() == 1);
  CHECK(backward.kernels[0].kernel == Kernel::flash_backward);
  CHECK(backward.kernels[0].account.method.deterministic);
  CHECK(measured(device, read_back(backward)).kernels.size() == 1);
}

TEST_CASE("a measurement of gradients is repeated, and another kernel laid over it leaves them behind") {
  FakeDevice device;
  MeasureRequest request = training(true);
  request.seed = 9;
  const MeasureReport first = measured(device, request);
  const MeasureReport again = measured(device, read_back(first));
  CHECK(measure_json(again)["input"] == measure_json(first)["input"]);
  CHECK(again.kernels.front().gradient_verification->dq.max_abs.size ==
        first.kernels.front().gradient_verification->dq.max_abs.size);
  MeasureRequest forward;
  forward.kernel = KernelChoice{Kernel::flash_fp32};
  const MeasureReport flash = measured(device, laid_over(forward, read_back(first)));
  CHECK(flash.kernels.front().kernel == Kernel::flash_fp32);
  CHECK(flash.kernels.front().plan.problem.storage == NumberType::fp32);
  MeasureRequest pass;
  pass.account.pass = Pass::backward;
  const MeasureReport back = measured(device, laid_over(pass, read_back(flash)));
  CHECK(back.kernels.front().kernel == Kernel::flash_backward);
  CHECK_FALSE(back.kernels.front().account.method.deterministic);
}

TEST_CASE("what an upper rung doesn't take is refused by name, before the device is asked") {
  const auto changed = [](MeasureRequest request, const auto& change) {
    change(request);
    return refused(request);
  };
  CHECK(changed(training(), [](MeasureRequest& r) { r.account.dtype = NumberType::fp32; }) ==
        "06_flash_backward takes fp16, bf16, not fp32 | no kernel takes it; run it on the CPU");
  CHECK(changed(training(), [](MeasureRequest& r) { r.account.head_dim = 256; }) ==
        "06_flash_backward takes head dimensions up to 128, not 256 | no kernel takes it; run it on the CPU");
  CHECK(changed(training(), [](MeasureRequest& r) { r.account.pass = Pass::forward; }) ==
        "06_flash_backward goes backward, and --pass is forward | leave --pass out");
  CHECK(changed(training(), [](MeasureRequest& r) { r.account.algorithm = Algorithm::standard; }) ==
        "06_flash_backward realises flash2, and --algo is standard | leave --algo out");
  CHECK(changed(training(), [](MeasureRequest& r) { r.account.splits = SplitsRequest{2}; }) ==
        "--splits means nothing for flash2, which doesn't split the keys | --algo split-kv");
  CHECK(changed(decoding(), [](MeasureRequest& r) { r.account.dtype = NumberType::fp32; }) ==
        "05_flash_split_kv takes fp16, bf16, not fp32 | taken by 01_standard, 02_standard_cublas, "
        "03_flash_fp32");
  CHECK(changed(decoding(), [](MeasureRequest& r) { r.account.pass = Pass::backward; }) ==
        "05_flash_split_kv goes forward, and --pass is backward | leave --pass out");
  CHECK(changed(decoding(), [](MeasureRequest& r) { r.account.deterministic = true; }) ==
        "--deterministic is a choice of flash2, and the algorithm is split-kv | ");
  CHECK(
      changed(small_request(), [](MeasureRequest& r) { r.account.deterministic = true; }) ==
      "--deterministic says how gradients are made, and --pass is forward | --pass backward or --pass both");
  CHECK(changed(small_request(), [](MeasureRequest& r) { r.d_o = "do.npy"; }) ==
        "--do is 'do.npy', and 03_flash_fp32 goes forward | --pass backward");
  CHECK(changed(small_request(), [](MeasureRequest& r) {
          r.kernel.reset();
          r.account.pass = Pass::both;
        }) == "--pass is both, and a kernel makes one of them | --pass forward or --pass backward");
  CHECK(
      changed(small_request(),
              [](MeasureRequest& r) {
                r.kernel.reset();
                r.account.pass = Pass::backward;
                r.account.algorithm = Algorithm::standard;
              }) ==
      "no kernel realises standard backward | there are kernels of flash2 backward (flashsim list kernels)");
}
