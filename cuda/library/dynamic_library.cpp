#include "cuda/library/dynamic_library.hpp"

#include <dlfcn.h>

namespace flashsim {

std::optional<DynamicLibrary> DynamicLibrary::open(std::span<const char* const> names, std::string& why_not) {
  std::string failures;
  for (const char* name : names) {
    if (name == nullptr || *name == '\0') continue;
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle);
    const char* failure = dlerror();
    if (!failures.empty()) failures += "; ";
    failures += failure != nullptr ? failure : name;
  }
  why_not = failures.empty() ? "no library was named" : failures;
  return std::nullopt;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynamicLibrary::address(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

}  // namespace flashsim
