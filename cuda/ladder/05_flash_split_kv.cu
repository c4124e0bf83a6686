#include "cuda/check.hpp"
#include "cuda/ladder/rung.hpp"

namespace flashsim {
namespace {

void launch_nothing(const RungArguments&) { throw CudaError(cudaErrorNotSupported, "05_flash_split_kv"); }
std::vector<KernelResources> no_resources(const DeviceTask&) { return {}; }

}  // namespace

const Rung kFlashSplitKvRung{
    .kernel = Kernel::flash_split_kv, .launch = launch_nothing, .resources = no_resources};

}  // namespace flashsim
