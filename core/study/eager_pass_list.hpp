// Eager attention's passes as a list of names: "scale,mask,softmax", as an option gives them, and the same in
// JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/problem/method.hpp"
#include "core/problem/problem.hpp"

namespace flashsim {

/// The passes that were named. Softmax always is one, named or not.
struct EagerPassList {
  bool scale = false;
  bool mask = false;
  bool dropout = false;
  friend constexpr bool operator==(EagerPassList, EagerPassList) = default;
};

/// The passes of those names: scale, mask, softmax, dropout. Errors: a name that is none of them, or that
/// stands twice, and a list without names.
Result<EagerPassList> eager_pass_list(const std::vector<std::string>& names);

/// The same from names with commas between them.
Result<EagerPassList> eager_pass_list_from(const std::string& text);

/// The passes on `problem`. A mask that is named is one on a problem that isn't causal too: a mask of padded
/// keys. Where nothing is named there is a scale, and a mask where the problem is causal.
EagerPasses resolve_passes(const std::optional<EagerPassList>& list, const Problem& problem);

/// The list that names what are passes under `method`, and the names.
EagerPassList listed(const Problem& problem, const Method& method);
std::vector<std::string> names_of(const EagerPassList& list);

}  // namespace flashsim
