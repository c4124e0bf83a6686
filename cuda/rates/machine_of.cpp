#include "cuda/rates/machine_of.hpp"

#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

/// "nvidia-h200-measured" of "NVIDIA H200".
std::string name_of_measured(const std::string& device) {
  std::string name;
  for (const char c : device) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name + (name.empty() || name.back() == '-' ? "measured" : "-measured");
}

/// More digits than a second measurement would repeat.
double four_digits(double value) {
  if (!(value > 0)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 3);
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / std::round(1 / unit);
}

std::optional<double> four_digits(std::optional<double> value) {
  return value ? std::optional(four_digits(*value)) : std::nullopt;
}

/// The built-in machine of the same sizes, whose rates are its datasheet's.
std::optional<Machine> built_in_like(const CudaDevice& device) {
  for (Machine& machine : built_in_machines()) {
    if (machine.rates == "datasheet" && machine.sms == device.sms && machine.l2 == device.l2 &&
        machine.shared_memory_per_sm == device.shared_memory_per_sm) {
      return std::move(machine);
    }
  }
  return std::nullopt;
}

std::string terabytes(double per_second) { return fmt::format("{:.2f} TB/s", 1e-12 * per_second); }

std::string text_of(const DriverVersions& driver) {
  return driver.version.empty() ? fmt::format("CUDA {}", driver.cuda)
                                : fmt::format("driver {}, CUDA {}", driver.version, driver.cuda);
}

std::string note_on_products(const MeasuredRates& rates) {
  if (rates.matrix_n == 0) {
    return fmt::format("No matrix product was measured, and fp16, bf16 and tf32 are unknown: {}.",
                       rates.no_matrix_products);
  }
  std::string note =
      fmt::format("fp16, bf16 and tf32 are matrix products through cuBLAS, N {}", rates.matrix_n);
  if (rates.matrix_fp32) {
    note +=
        fmt::format(" (its float32 product, which no key holds: {:.1f} TFLOP/s)", 1e-12 * *rates.matrix_fp32);
  }
  note += "; fp8 wasn't measured.";
  if (rates.matrix_clock_hz) {
    note += fmt::format(" The SMs held {:.2f} GHz during the fp16 products.", 1e-9 * *rates.matrix_clock_hz);
  }
  return note;
}

std::string notes(const CudaDevice& device, const DriverVersions& driver, const MeasuredRates& rates,
                  const std::optional<Machine>& like) {
  return fmt::format(
      "One {}, {}, on random data, medians of several runs after the clocks had "
      "settled. "
      "memory_bytes_per_second: a copy of {} in device memory, read and written, the faster of a kernel's "
      "({}) and "
      "cudaMemcpyAsync's ({}). l2_bytes_per_second: {} read again and again, past the L1. fp32 and fp64 are "
      "multiply-adds in registers, on the FMA units alone. fragment_flops_per_second: mma.sync from "
      "registers. {} "
      "clock_hz is what the SMs held during the "
      "float32 "
      "multiply-adds. launch_seconds: an empty kernel behind other work, by events; alone on an idle device "
      "{}, "
      "one of a thousand in a row {}. {}",
      device.name, text_of(driver), size_text(rates.copied), terabytes(rates.copy_by_kernel),
      terabytes(rates.copy_by_runtime), size_text(rates.l2_read), note_on_products(rates),
      seconds_text({rates.launch_alone}), seconds_text({rates.launch_in_row}),
      like ? fmt::format("l2_partitions are those of {}, since no driver tells them.", like->name)
           : "No driver tells l2_partitions, and no built-in machine has these sizes: 1 stands for unknown.");
}

}  // namespace

Machine machine_of(const CudaDevice& device, const DriverVersions& driver, const MeasuredRates& rates) {
  const std::optional<Machine> like = built_in_like(device);
  Machine machine{
      .name = name_of_measured(device.name),
      .title = device.name + " (measured)",
      .vendor = "NVIDIA",
      .memory = device.memory,
      .memory_bandwidth = {four_digits(std::fmax(rates.copy_by_kernel, rates.copy_by_runtime))},
      .l2 = device.l2,
      .l2_partitions = like ? like->l2_partitions : 1,
      .l2_bandwidth = BytesPerSecond{four_digits(rates.l2_bytes_per_second)},
      .sms = device.sms,
      .shared_memory_per_sm = device.shared_memory_per_sm,
      .shared_memory_per_block = device.shared_memory_per_block,
      .registers_per_sm = device.registers_per_sm,
      .blocks_per_sm = device.blocks_per_sm,
      .clock_hz = four_digits(rates.clock_hz),
      .shared_memory_bytes_per_sm_per_clock = four_digits(rates.shared_memory_bytes_per_sm_per_clock),
      .launch_seconds = four_digits(rates.launch_queued),
      .exponentials_per_sm_per_clock = four_digits(rates.exponentials_per_sm_per_clock),
      .flops_per_second = {.fp64 = four_digits(rates.fp64_flops_per_second),
                           .fp32 = four_digits(rates.fp32_flops_per_second),
                           .tf32 = four_digits(rates.matrix_tf32),
                           .fp16 = four_digits(rates.matrix_fp16),
                           .bf16 = four_digits(rates.matrix_bf16)},
      .fragment_flops_per_second = {.fp16 = four_digits(rates.fragments_fp16),
                                    .bf16 = four_digits(rates.fragments_bf16)},
      .rates = "measured",
      .measured = {"memory_bytes_per_second", "l2_bytes_per_second", "clock_hz",
                   "shared_memory_bytes_per_sm_per_clock", "launch_seconds", "exponentials_per_sm_per_clock",
                   "flops_per_second", "fragment_flops_per_second"},
      .notes = notes(device, driver, rates, like),
      .source = "flashsim calibrate; the sizes are what the CUDA runtime says"};
  if (!like) machine.uncertain = {"l2_partitions"};
  return machine;
}

}  // namespace flashsim
