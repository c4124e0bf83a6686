// What a calibration makes of a driver's words and measured figures, which needs no GPU.
#include <string>

#include "core/account/clock.hpp"
#include "core/problem/machine.hpp"
#include "cuda/rates/machine_of.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

const DriverVersions kDriver{.version = "580.159.04", .cuda = "13.0"};

CudaDevice device_like(const std::string& machine, const std::string& name) {
  const Machine like = find_machine(machine).value();
  return {.name = name,
          .compute_capability = "9.0",
          .sms = like.sms,
          .memory = like.memory,
          .l2 = like.l2,
          .shared_memory_per_sm = like.shared_memory_per_sm,
          .shared_memory_per_block = like.shared_memory_per_block,
          .registers_per_sm = like.registers_per_sm,
          .blocks_per_sm = like.blocks_per_sm,
          .clock_hz = like.clock_hz};
}

MeasuredRates some_rates() {
  return {.copied = Bytes(std::int64_t{2} << 30),
          .copy_by_kernel = 3.951749e12,
          .copy_by_runtime = 4.204951e12,
          .l2_read = Bytes(15'728'640),
          .l2_bytes_per_second = 7.274961e12,
          .fp32_flops_per_second = 5.611111e13,
          .fp64_flops_per_second = 3.022222e13,
          .clock_hz = 1.734567e9,
          .exponentials_per_sm_per_clock = 15.98765,
          .shared_memory_bytes_per_sm_per_clock = 127.4567,
          .fragments_fp16 = 6.123456e14,
          .fragments_bf16 = 6.234567e14,
          .matrix_n = 8192,
          .matrix_fp16 = 7.303149e14,
          .matrix_bf16 = 7.572149e14,
          .matrix_tf32 = 3.980149e14,
          .matrix_fp32 = 5.083149e13,
          .matrix_clock_hz = 1.7491e9,
          .launch_alone = 7.68e-6,
          .launch_queued = 2.3456e-6,
          .launch_in_row = 4.66e-6};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a measured machine has the driver's sizes and the measured rates, to four digits") {
  const CudaDevice device = device_like("h200", "NVIDIA H200");
  const Machine machine = machine_of(device, kDriver, some_rates());
  CHECK(machine.name == "nvidia-h200-measured");
  CHECK(machine.title == "NVIDIA H200 (measured)");
  CHECK(machine.rates == "measured");
  CHECK(machine.memory == device.memory);
  CHECK(machine.shared_memory_per_block == device.shared_memory_per_block);
  CHECK(machine.registers_per_sm == device.registers_per_sm);
  CHECK(machine.blocks_per_sm == device.blocks_per_sm);
  CHECK(machine.memory_bandwidth.value == 4'205'000'000'000);
  CHECK(machine.l2_bandwidth.value().value == 7'275'000'000'000);
  CHECK(machine.clock_hz == 1'735'000'000);
  CHECK(machine.flops_per_second.fp32 == 56'110'000'000'000);
  CHECK(machine.flops_per_second.fp64 == 30'220'000'000'000);
  CHECK(machine.flops_per_second.fp16 == 730'300'000'000'000);
  CHECK(machine.flops_per_second.bf16 == 757'200'000'000'000);
  CHECK(machine.flops_per_second.tf32 == 398'000'000'000'000);
  CHECK(machine.fragment_flops_per_second.fp16 == 612'300'000'000'000);
  CHECK(machine.fragment_flops_per_second.bf16 == 623'500'000'000'000);
  CHECK(machine.exponentials_per_sm_per_clock == 15.99);
  CHECK(machine.shared_memory_bytes_per_sm_per_clock == 127.5);
  CHECK(machine.launch_seconds == 2.346e-6);
}

TEST_CASE("what wasn't measured isn't claimed") {
  MeasuredRates rates = some_rates();
  CHECK_FALSE(machine_of(device_like("h200", "NVIDIA H200"), kDriver, rates).flops_per_second.fp8);
  rates.matrix_n = 0;
  rates.matrix_fp16 = rates.matrix_bf16 = rates.matrix_tf32 = rates.matrix_fp32 = std::nullopt;
  rates.no_matrix_products = "cuBLAS can't be opened";
  const Machine machine = machine_of(device_like("h200", "NVIDIA H200"), kDriver, rates);
  CHECK_FALSE(machine.flops_per_second.fp16);
  CHECK_FALSE(machine.flops_per_second.bf16);
  CHECK_FALSE(machine.flops_per_second.tf32);
  CHECK(machine.flops_per_second.fp32);
  CHECK(contains(machine.notes, "cuBLAS can't be opened"));
  // The time model then speaks of float32, and of float16 says what is missing.
  CHECK(Clock::of(machine, {.storage = NumberType::fp32}).ok());
  CHECK_FALSE(Clock::of(machine, {.storage = NumberType::fp16}).ok());
}

TEST_CASE("partitions of the L2 are the built-in machine's of the same sizes, and else unknown") {
  const Machine known = machine_of(device_like("h100", "NVIDIA H100 80GB HBM3"), kDriver, some_rates());
  CHECK(known.name == "nvidia-h100-80gb-hbm3-measured");
  CHECK(known.l2_partitions == 2);
  CHECK(known.uncertain.empty());
  CHECK(contains(known.notes, "l2_partitions are those of h100"));

  CudaDevice odd = device_like("h100", "NVIDIA Odd (one)");
  odd.sms = 7;
  const Machine unknown = machine_of(odd, kDriver, some_rates());
  CHECK(unknown.name == "nvidia-odd-one-measured");
  CHECK(unknown.l2_partitions == 1);
  CHECK(unknown.uncertain == std::vector<std::string>{"l2_partitions"});
}

TEST_CASE("the notes tell the driver, and how each rate was measured") {
  const CudaDevice device = device_like("h200", "NVIDIA H200");
  const std::string notes = machine_of(device, kDriver, some_rates()).notes;
  CHECK(contains(notes, "driver 580.159.04, CUDA 13.0"));
  CHECK(contains(notes, "a copy of 2.00 GiB"));
  CHECK(contains(notes, "a kernel's (3.95 TB/s) and cudaMemcpyAsync's (4.20 TB/s)"));
  CHECK(contains(notes, "N 8192"));
  CHECK(contains(notes, "50.8 TFLOP/s"));
  CHECK(contains(notes, "1.75 GHz during the fp16 products"));
  CHECK(contains(notes, "in a row 4.66 µs"));
  CHECK(contains(machine_of(device, {.cuda = "13.0"}, some_rates()).notes, "One NVIDIA H200, CUDA 13.0, on"));
}

}  // namespace
}  // namespace flashsim
