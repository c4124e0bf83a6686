#include "cuda/driver_facts.hpp"

#include <array>
#include <utility>

#include <cuda_runtime.h>

#include "cuda/driver_version.hpp"
#include "cuda/library/dynamic_library.hpp"

namespace flashsim {
namespace {

// Of nvml.h, which toolkits don't always bring. The names are NVML's, and their meaning is fixed.
using NvmlReturn = int;  // 0: success
struct NvmlDeviceRecord;
using NvmlDevice = NvmlDeviceRecord*;
enum class NvmlClock : unsigned { graphics = 0, sm = 1, memory = 2 };

constexpr NvmlReturn kSuccess = 0;
constexpr std::array kNames{"libnvidia-ml.so.1", "libnvidia-ml.so"};

}  // namespace

/// NVML, initialised for as long as it lives.
class DriverFacts::Nvml {
 public:
  /// Null where the library is missing or won't start.
  static std::unique_ptr<Nvml> open() {
    std::string why_not;
    auto library = DynamicLibrary::open(kNames, why_not);
    if (!library) return nullptr;
    auto* start = library->function<NvmlReturn()>("nvmlInit_v2");
    if (start == nullptr || start() != kSuccess) return nullptr;
    return std::unique_ptr<Nvml>(new Nvml(std::move(*library)));
  }
  ~Nvml() {
    if (auto* end = library_.function<NvmlReturn()>("nvmlShutdown")) (void)end();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void find(const char* bus_id) {
    auto* get = library_.function<NvmlReturn(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (get == nullptr || get(bus_id, &device_) != kSuccess) device_ = nullptr;
  }

  [[nodiscard]] std::string version() const {
    auto* get = library_.function<NvmlReturn(char*, unsigned)>("nvmlSystemGetDriverVersion");
    std::array<char, 96> text{};
    if (get == nullptr || get(text.data(), static_cast<unsigned>(text.size() - 1)) != kSuccess) return "";
    return text.data();
  }

  [[nodiscard]] std::optional<double> clock_hz(NvmlClock which) const {
    constexpr double kMega = 1e6;
    unsigned megahertz = 0;
    if (device_ == nullptr || clock_ == nullptr || clock_(device_, which, &megahertz) != kSuccess) {
      return std::nullopt;
    }
    return kMega * megahertz;
  }

 private:
  using Clock = NvmlReturn(NvmlDevice, NvmlClock, unsigned*);

  explicit Nvml(DynamicLibrary library)
      : library_(std::move(library)), clock_(library_.function<Clock>("nvmlDeviceGetClockInfo")) {}

  DynamicLibrary library_;
  Clock* clock_;
  NvmlDevice device_ = nullptr;
};

DriverFacts::DriverFacts(int device) : nvml_(Nvml::open()) {
  std::array<char, 32> bus_id{};  // "0000:1B:00.0"
  if (nvml_ == nullptr) return;
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device) != cudaSuccess) {
    (void)cudaGetLastError();  // or the next launch's check would find it
    return;
  }
  nvml_->find(bus_id.data());
}

DriverFacts::~DriverFacts() = default;

std::string DriverFacts::version() const {
  std::string version = nvml_ == nullptr ? "" : nvml_->version();
  return version.empty() ? driver_version_of_module() : version;
}

std::optional<double> DriverFacts::sm_clock_hz() const {
  return nvml_ == nullptr ? std::nullopt : nvml_->clock_hz(NvmlClock::sm);
}

std::optional<double> DriverFacts::memory_clock_hz() const {
  return nvml_ == nullptr ? std::nullopt : nvml_->clock_hz(NvmlClock::memory);
}

}  // namespace flashsim
