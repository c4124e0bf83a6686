// Where it is computed: a GPU, read from a data file (core/problem/machines).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/number_types.hpp"
#include "core/base/result.hpp"
#include "core/base/units.hpp"

namespace flashsim {

struct Machine {
  std::string name;  ///< "a100"
  std::vector<std::string> aliases;
  std::string title;  ///< "A100 80 GB"
  std::string vendor;
  Bytes memory;  ///< HBM, all of it
  BytesPerSecond memory_bandwidth;
  Bytes l2;
  std::int64_t l2_partitions = 1;              ///< parts that each serve the SMs next to them
  std::optional<BytesPerSecond> l2_bandwidth;  ///< reads by all SMs; absent where no figure is known
  std::int64_t sms = 0;
  Bytes shared_memory_per_sm;
  Bytes shared_memory_per_block;  ///< the most that one thread block may take
  Bytes registers_per_sm;
  std::int64_t blocks_per_sm = 0;  ///< the most thread blocks an SM holds
  double clock_hz = 0;
  double shared_memory_bytes_per_sm_per_clock = 128;
  double launch_seconds =
      3e-6;  ///< from the launch of a kernel to its first block, and from its last to its end
  std::optional<double> exponentials_per_sm_per_clock;
  /// Dense rates; absent where the chip has no such unit or no figure is known.
  struct Rates {
    std::optional<double> fp64, fp32, tf32, fp16, bf16, fp8;
  } flops_per_second;
  /// Rates of products that warps make of fragments in their registers (mma.sync), where they are another
  /// than the type's own.
  struct FragmentRates {
    std::optional<double> fp16, bf16;
  } fragment_flops_per_second;
  std::string rates;                   ///< "datasheet" or "measured"
  std::vector<std::string> uncertain;  ///< keys of the data file whose value is uncertain
  std::vector<std::string> measured;   ///< keys whose value was measured on such a machine
  std::string notes;
  std::string source;

  /// Shared memory that the hardware keeps back for each resident block.
  [[nodiscard]] Bytes reserved_per_block() const { return shared_memory_per_sm - shared_memory_per_block; }
  /// FLOPs for each byte of HBM bandwidth, in that type; absent without a rate.
  [[nodiscard]] std::optional<FlopsPerByte> balance(NumberType type) const;
};

/// A built-in machine by name or alias, or a file. Errors: unknown names and whatever is wrong in it.
Result<Machine> find_machine(const std::string& name_or_path);

/// Every built-in machine, by name.
std::vector<Machine> built_in_machines();

}  // namespace flashsim
