// A machine file's content for a GPU, put together from what its driver says and what was measured on it.
// Nothing here needs a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/units.hpp"
#include "core/problem/machine.hpp"
#include "cuda/backend.hpp"

namespace flashsim {

/// What was measured, each figure as it came.
struct MeasuredRates {
  Bytes copied;                    ///< from one place to another
  double copy_by_kernel = 0;       ///< bytes read and written a second
  double copy_by_runtime = 0;      ///< likewise
  Bytes l2_read;                   ///< what was read again and again
  double l2_bytes_per_second = 0;  ///< by all SMs

  double fp32_flops_per_second = 0;  ///< multiply-adds in registers
  double fp64_flops_per_second = 0;  ///< likewise
  double clock_hz = 0;               ///< that the SMs held during those of float32
  double exponentials_per_sm_per_clock = 0;
  double shared_memory_bytes_per_sm_per_clock = 0;

  double fragments_fp16 = 0, fragments_bf16 = 0;  ///< FLOPs a second of products from registers (mma.sync)

  std::int64_t matrix_n = 0;                                                 ///< the products were of N × N
  std::optional<double> matrix_fp16, matrix_bf16, matrix_tf32, matrix_fp32;  ///< FLOPs a second
  std::optional<double> matrix_clock_hz;  ///< that the SMs held during the fp16 products
  std::string no_matrix_products;         ///< why there are none

  double launch_alone = 0, launch_queued = 0, launch_in_row = 0;  ///< seconds
};

struct DriverVersions {
  std::string version;  ///< "580.159.04"; empty where it doesn't tell
  std::string cuda;     ///< that it speaks: "13.0"
};

/// Sizes are the driver's, rates the measured ones with four digits, and what wasn't measured is absent.
/// l2_partitions, which no driver tells, are those of
/// the built-in machine with the same sizes, and 1 where there is none; `notes` says which.
Machine machine_of(const CudaDevice& device, const DriverVersions& driver, const MeasuredRates& rates);

}  // namespace flashsim
