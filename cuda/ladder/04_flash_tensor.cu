#include "cuda/check.hpp"
#include "cuda/ladder/rung.hpp"

namespace flashsim {
namespace {

void launch_nothing(const RungArguments&) { throw CudaError(cudaErrorNotSupported, "04"); }
std::vector<KernelResources> no_resources(const DeviceTask&) { return {}; }

}  // namespace

const Rung kFlashTensorRung{
    .kernel = Kernel::flash_tensor, .launch = launch_nothing, .resources = no_resources};

}  // namespace flashsim
