// The driver's version as the kernel module tells it, for where NVML is missing.
#pragma once

#include <string>
#include <string_view>

namespace flashsim {

/// The first word of `text` that is a version, digits with dots between them: "580.159.04" of "NVRM version:
/// NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue …". Empty where there is none.
std::string driver_version_in(std::string_view text);

/// That of /proc/driver/nvidia/version; empty without such a file.
std::string driver_version_of_module();

}  // namespace flashsim
