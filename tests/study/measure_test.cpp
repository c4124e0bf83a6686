// A measurement, with the CPU in the GPU's place.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

#include "core/account/prediction.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/study/fake_device.hpp"

namespace {

using flashsim::ByteFigure;
using flashsim::ByteFigureKind;
using flashsim::Bytes;
using flashsim::ByteSource;
using flashsim::CacheState;
using flashsim::Count;
using flashsim::CounterSource;
using flashsim::Kernel;
using flashsim::KernelChoice;
using flashsim::KernelReport;
using flashsim::make_measurement;
using flashsim::MeasureReport;
using flashsim::MeasureRequest;
using flashsim::NumberType;
using flashsim::Verdict;
using flashsim::test::FakeDevice;
using flashsim::test::hint_of;
using flashsim::test::measured;
using flashsim::test::message_of;
using flashsim::test::modelled_device;
using flashsim::test::reading_of;
using flashsim::test::small_request;

}  // namespace

TEST_CASE("a right result is measured, and every figure stands beside the account's") {
  for (const Kernel kernel : {Kernel::standard, Kernel::standard_cublas, Kernel::flash_fp32}) {
    const MeasureRequest request = small_request(kernel);
    FakeDevice device = modelled_device(request);
    const MeasureReport report = measured(device, request);
    REQUIRE(report.kernels.size() == 1);
    const KernelReport& k = report.kernels.front();
    INFO(flashsim::facts_of(kernel).name);
    CHECK(report.right());
    CHECK(k.verdict == Verdict::right);
    CHECK(k.differences.empty());
    CHECK(device.executed == 1);
    CHECK(device.measured == 1);
    const auto tally = flashsim::predict(k.plan.problem, k.plan.method()).tally;
    CHECK(k.figure(ByteFigureKind::sm_read).model == tally.sm_total().read);
    CHECK(k.figure(ByteFigureKind::sm_written).model == tally.sm_total().written);
    CHECK(k.figure(ByteFigureKind::papers_hbm).model == tally.hbm_total().total());
    CHECK(k.figure(ByteFigureKind::hbm_read).model == k.account.simulation->after_l2.hbm.read);
    for (const ByteFigure& figure : k.bytes) {
      if (figure.kind == ByteFigureKind::papers_hbm) continue;
      CHECK(figure.seen == figure.model);
      CHECK(figure.difference() == 0.0);
    }
    CHECK(k.time->difference() == 0.0);
  }
}

TEST_CASE("the account is that of the kernel's own tiles and habits, on the machine of the GPU") {
  FakeDevice device;
  const MeasureReport report = measured(device, small_request());
  const KernelReport& k = report.kernels.front();
  CHECK(report.machine.name == "h200-measured");
  CHECK(k.account.machine.name == "h200-measured");
  CHECK(k.account.method.tiling.query_rows == 128);
  CHECK(k.account.method.tiling.key_rows == 64);
  CHECK(k.account.habits.launch_order == flashsim::LaunchOrder::longest_first);
  CHECK(k.account.habits.overlap == flashsim::Overlap::serial);
  CHECK(device.task.problem.head_dim == 64);
  CHECK(device.asked.cache == CacheState::cold);
  CHECK(device.asked.counters == CounterSource::automatic);
}

TEST_CASE("the peak has L, which every kernel writes, whether the papers' account has it or not") {
  FakeDevice device;
  for (const Kernel kernel : {Kernel::standard, Kernel::flash_fp32}) {
    const MeasureReport report = measured(device, small_request(kernel));
    const KernelReport& k = report.kernels.front();
    const Bytes lse(std::int64_t{2} * 200 * 4);
    const Bytes o(std::int64_t{2} * 200 * 64 * size_of(k.plan.problem.storage));
    const Bytes s(std::int64_t{2} * 200 * 200 * size_of(k.plan.problem.storage));
    CHECK(k.figure(ByteFigureKind::peak_memory).model ==
          (kernel == Kernel::standard ? o + s + lse : o + lse));
  }
}

TEST_CASE("a wrong result is not timed, and the first wrong value is told") {
  FakeDevice device;
  device.spoil = [](flashsim::DeviceOutputs& out) { out.o[70 * 64 + 5] += 0.5F; };
  const MeasureReport report = measured(device, small_request());
  const KernelReport& k = report.kernels.front();
  CHECK_FALSE(report.right());
  CHECK(k.verdict == Verdict::wrong);
  CHECK(device.measured == 0);
  CHECK_FALSE(k.measurement.has_value());
  CHECK(k.bytes.empty());
  REQUIRE(k.verification.output.first_wrong.has_value());
  CHECK(k.verification.output.first_wrong->at.row == 70);
  CHECK(k.verification.output.first_wrong->at.column == 5);
  const auto json = measure_json(report);
  CHECK(json["result"]["kernels"][0]["verification"]["first_wrong"]["at"]["row"] == 70);
  CHECK(json["result"]["kernels"][0]["measurement"].is_null());

  device.spoil = [](flashsim::DeviceOutputs& out) { out.lse[3] = std::numeric_limits<float>::quiet_NaN(); };
  const auto of_lse = measure_json(measured(device, small_request()));
  CHECK(of_lse["result"]["kernels"][0]["verification"]["first_wrong"]["tensor"] == "L");
  CHECK(of_lse["result"]["kernels"][0]["verification"]["first_wrong"]["got"] == "NaN");
}

TEST_CASE("a device that gives too few numbers is an error and no crash") {
  FakeDevice device;
  device.spoil = [](flashsim::DeviceOutputs& out) { out.lse.pop_back(); };
  CHECK(message_of(make_measurement(small_request(), device.backend())) ==
        "the device gave 399 numbers of L, not 400");
  device.spoil = [](flashsim::DeviceOutputs&) {};
  device.measurement.seconds.clear();
  CHECK(message_of(make_measurement(small_request(), device.backend())) ==
        "the device timed no run of 03_flash_fp32");
}

TEST_CASE("without counters the bytes are the model's, and it is said why and what helps") {
  FakeDevice device;
  device.measurement.bytes = ByteSource::modelled;
  device.measurement.no_counters = "the driver keeps its counters for administrators";
  device.measurement.remedy = "ask for NVreg_RestrictProfilingToAdminUsers=0";
  device.measurement.peak_memory = Bytes(std::int64_t{1});
  const MeasureReport report = measured(device, small_request());
  const KernelReport& k = report.kernels.front();
  CHECK(k.figure(ByteFigureKind::sm_read).model.has_value());
  for (const auto kind : {ByteFigureKind::sm_read, ByteFigureKind::sm_written, ByteFigureKind::hbm_read,
                          ByteFigureKind::hbm_written, ByteFigureKind::papers_hbm}) {
    CHECK_FALSE(k.figure(kind).seen.has_value());
    CHECK_FALSE(k.figure(kind).missing);
  }
  CHECK(k.time->median.value == 2e-3);
  const auto json = measure_json(report)["result"]["kernels"][0]["measurement"];
  CHECK(json["bytes"] == "modelled");
  CHECK(json["no_counters"] == "the driver keeps its counters for administrators");
  CHECK(json["remedy"] == "ask for NVreg_RestrictProfilingToAdminUsers=0");
}

TEST_CASE("what the kernel counts of itself is instrumented, and HBM isn't counted at all") {
  FakeDevice device;
  device.measurement.bytes = ByteSource::instrumented;
  device.measurement.counters = {{"sm_read_bytes", "", 1000}, {"sm_written_bytes", "", 2000}};
  const MeasureReport report = measured(device, small_request());
  const KernelReport& k = report.kernels.front();
  CHECK(k.figure(ByteFigureKind::sm_read).seen == Bytes(std::int64_t{1000}));
  CHECK(k.figure(ByteFigureKind::sm_written).seen == Bytes(std::int64_t{2000}));
  CHECK_FALSE(k.figure(ByteFigureKind::hbm_read).seen.has_value());
  CHECK(measure_json(report)["result"]["kernels"][0]["measurement"]["bytes"] == "instrumented");
}

TEST_CASE("a counter that the chip hasn't is not available, and nothing is said of its figure") {
  FakeDevice device = modelled_device(small_request());
  reading_of(device.measurement, "hbm_read_bytes") = {
      .what = "hbm_read_bytes", .metric = "", .value = std::nullopt};
  const MeasureReport report = measured(device, small_request());
  const KernelReport& k = report.kernels.front();
  CHECK(k.figure(ByteFigureKind::hbm_read).missing);
  CHECK_FALSE(k.figure(ByteFigureKind::hbm_read).difference().has_value());
  CHECK(k.figure(ByteFigureKind::papers_hbm).missing);
  CHECK_FALSE(k.figure(ByteFigureKind::hbm_written).missing);
  CHECK(k.differences.empty());
}

TEST_CASE("the median of the repeats stands for them") {
  FakeDevice device;
  device.measurement.seconds = {5, 1, 3};
  CHECK(measured(device, small_request()).kernels.front().time->median.value == 3);
  device.measurement.seconds = {4, 1, 9, 2};
  const auto time = *measured(device, small_request()).kernels.front().time;
  CHECK(time.median.value == 3);
  CHECK(time.least.value == 1);
  CHECK(time.most.value == 9);
}

TEST_CASE("all measures every kernel that takes the type, each in its first one where none is given") {
  FakeDevice device;
  MeasureRequest request = small_request(std::nullopt);
  const MeasureReport each = measured(device, request);
  REQUIRE(each.kernels.size() == 5);
  CHECK(each.left_out.empty());
  CHECK(each.kernels[0].plan.problem.storage == NumberType::fp16);
  CHECK(each.kernels[2].plan.problem.storage == NumberType::fp32);

  request.account.dtype = NumberType::bf16;
  const MeasureReport same = measured(device, request);
  CHECK(same.kernels.size() == 4);
  REQUIRE(same.left_out.size() == 1);
  CHECK(same.left_out[0].kernel == Kernel::flash_fp32);
  CHECK(same.left_out[0].why == "03_flash_fp32 takes fp32, not bf16");
  CHECK_FALSE(same.left_out[0].failed);
  CHECK(same.right());
}

TEST_CASE("of all kernels one that fails is told and the others go on; alone it is an error") {
  FakeDevice device;
  auto backend = device.backend();
  const auto execute = backend.execute;
  backend.execute = [&](const auto& task, const auto& inputs) -> flashsim::Result<flashsim::DeviceOutputs> {
    if (task.kernel == Kernel::standard) return flashsim::Error{"S needs 9 GiB", ""};
    return execute(task, inputs);
  };
  const auto all = make_measurement(small_request(std::nullopt), backend);
  REQUIRE(message_of(all) == flashsim::test::kNoError);
  CHECK(all->kernels.size() == 4);
  REQUIRE(all->left_out.size() == 1);
  CHECK(all->left_out[0].failed);
  CHECK_FALSE(all->right());
  CHECK(message_of(make_measurement(small_request(Kernel::standard), backend)) == "S needs 9 GiB");
}

TEST_CASE("a GPU without a machine file is told how to come by one, and --gpu gives it") {
  FakeDevice device;
  device.facts.name = "NVIDIA Unheard Of";
  MeasureRequest request = small_request();
  const auto refused = make_measurement(request, device.backend());
  CHECK(message_of(refused) == "no machine file fits the GPU here, 'NVIDIA Unheard Of'");
  CHECK(hint_of(refused) == "write one with flashsim calibrate --out FILE, and give it by --gpu FILE");
  request.account.gpu = "h100";
  CHECK(measured(device, request).machine.name == "h100");
}

TEST_CASE("bad requests are refused before the device is asked") {
  FakeDevice device;
  device.no_device = flashsim::Error{"there is no GPU", ""};
  MeasureRequest request = small_request();
  CHECK(message_of(make_measurement(request, device.backend())) == "there is no GPU");
  request.account.dtype = NumberType::fp16;
  const auto typed = make_measurement(request, device.backend());
  CHECK(message_of(typed) == "03_flash_fp32 takes fp32, not fp16");
  CHECK(hint_of(typed) == "taken by 01_standard, 02_standard_cublas, 04_flash_tensor, 05_flash_split_kv");
  request = small_request();
  request.account.algorithm = flashsim::Algorithm::standard;
  CHECK(message_of(make_measurement(request, device.backend())) ==
        "03_flash_fp32 realises flash2, and --algo is standard");
  request.kernel.reset();
  request.account.algorithm = flashsim::Algorithm::flash1;
  CHECK(message_of(make_measurement(request, device.backend())) == "no kernel realises flash1");
  CHECK(device.executed == 0);
}
