#include "core/problem/method.hpp"

#include "core/base/nearest.hpp"

namespace flashsim {

Result<Pass> pass_named(std::string_view name) {
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::both}) {
    if (name_of(pass) == name) return pass;
  }
  return unknown_name("pass", name, {"forward", "backward", "both"});
}

}  // namespace flashsim
