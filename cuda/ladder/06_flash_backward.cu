#include "cuda/check.hpp"
#include "cuda/ladder/rung.hpp"

namespace flashsim {
namespace {

void launch_nothing(const RungArguments&) { throw CudaError(cudaErrorNotSupported, "06_flash_backward"); }
std::vector<KernelResources> no_resources(const DeviceTask&) { return {}; }

}  // namespace

const Rung kFlashBackwardRung{
    .kernel = Kernel::flash_backward, .launch = launch_nothing, .resources = no_resources};

}  // namespace flashsim
