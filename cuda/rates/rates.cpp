#include "cuda/rates/rates.hpp"

#include <string_view>

#include "cuda/backend.hpp"
#include "cuda/check.hpp"
#include "cuda/driver_facts.hpp"
#include "cuda/memory_pool.hpp"
#include "cuda/rates/launch_rates.hpp"
#include "cuda/rates/machine_of.hpp"
#include "cuda/rates/matrix_rates.hpp"
#include "cuda/rates/memory_rates.hpp"
#include "cuda/rates/unit_rates.hpp"

namespace flashsim {
namespace {

/// A working set that stays in the L2 whole, even where each half of the cache keeps a copy of it.
constexpr std::size_t kShareOfL2 = 4;

class Phases {
 public:
  explicit Phases(const DeviceProgress& progress) : progress_(progress) {}
  void next(std::string_view phase) {
    constexpr int kAll = 9;
    if (progress_) progress_(phase, static_cast<double>(begun_) / kAll);
    ++begun_;
  }

 private:
  const DeviceProgress& progress_;
  int begun_ = 0;
};

}  // namespace

Machine calibrate_on(int device, const DeviceProgress& progress) {
  const CudaDevices found = cuda_devices();
  if (device < 0 || static_cast<std::size_t>(device) >= found.devices.size()) {
    throw CudaError(cudaErrorInvalidDevice, "calibrate_on");
  }
  const CudaDevice& gpu = found.devices[static_cast<std::size_t>(device)];
  cuda_check(cudaSetDevice(device), "cudaSetDevice");
  const auto sms = static_cast<int>(gpu.sms);
  const cudaStream_t stream = nullptr;
  const DriverFacts driver(device);
  MemoryPool pool(device);
  MeasuredRates rates;
  Phases phases(progress);

  // First, since it lets the clocks rise, and so that what the others heat up doesn't show in the clock.
  phases.next("float32 multiply-adds");
  const UnitRate fp32 = measure_unit(Unit::fp32, pool, sms, stream);
  rates.fp32_flops_per_second = fp32.per_second;
  rates.clock_hz = fp32.clock_hz;
  phases.next("float64 multiply-adds");
  rates.fp64_flops_per_second = measure_unit(Unit::fp64, pool, sms, stream).per_second;
  phases.next("exponentials");
  rates.exponentials_per_sm_per_clock = measure_unit(Unit::exponentials, pool, sms, stream).per_sm_per_clock;
  phases.next("shared memory");
  rates.shared_memory_bytes_per_sm_per_clock =
      measure_unit(Unit::shared_memory, pool, sms, stream).per_sm_per_clock;

  phases.next("products of fragments");
  rates.fragments_fp16 = measure_unit(Unit::fragments_fp16, pool, sms, stream).per_second;
  rates.fragments_bf16 = measure_unit(Unit::fragments_bf16, pool, sms, stream).per_second;

  phases.next("copies");
  const CopyRates copies = measure_copies(pool, sms, stream);
  rates.copied = Bytes(static_cast<std::int64_t>(copies.bytes));
  rates.copy_by_kernel = copies.by_kernel;
  rates.copy_by_runtime = copies.by_runtime;
  phases.next("L2 reads");
  const std::size_t l2_read = static_cast<std::size_t>(gpu.l2.value()) / kShareOfL2;
  rates.l2_read = Bytes(static_cast<std::int64_t>(l2_read));
  rates.l2_bytes_per_second = measure_l2_reads(pool, sms, l2_read, stream);

  phases.next("matrix products");
  const MatrixRates products = measure_matrix_products(pool, driver, stream);
  rates.matrix_n = products.n;
  rates.matrix_fp16 = products.of(MatrixType::fp16);
  rates.matrix_bf16 = products.of(MatrixType::bf16);
  rates.matrix_tf32 = products.of(MatrixType::tf32);
  rates.matrix_fp32 = products.of(MatrixType::fp32);
  rates.matrix_clock_hz = products.clock_hz;
  rates.no_matrix_products = products.missing;

  phases.next("launches");
  const LaunchCosts launches = measure_launches(sms, stream);
  rates.launch_alone = launches.alone;
  rates.launch_queued = launches.queued;
  rates.launch_in_row = launches.in_row;
  return machine_of(gpu, {.version = driver.version(), .cuda = found.driver}, rates);
}

}  // namespace flashsim
