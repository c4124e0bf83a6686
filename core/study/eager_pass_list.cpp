#include "core/study/eager_pass_list.hpp"

#include <set>

#include <fmt/format.h>

#include "core/base/nearest.hpp"

namespace flashsim {

Result<EagerPassList> eager_pass_list(const std::vector<std::string>& names) {
  EagerPassList list;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name == "scale") {
      list.scale = true;
    } else if (name == "mask") {
      list.mask = true;
    } else if (name == "dropout") {
      list.dropout = true;
    } else if (name != "softmax") {
      return unknown_name("pass of eager", name, {"scale", "mask", "softmax", "dropout"});
    }
    if (!seen.insert(name).second) return Error{fmt::format("pass of eager '{}' stands twice", name), ""};
  }
  if (seen.empty()) return Error{"no passes of eager are named", "softmax always is one"};
  return list;
}

Result<EagerPassList> eager_pass_list_from(const std::string& text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  if (text.empty()) names.clear();
  return eager_pass_list(names);
}

EagerPasses resolve_passes(const std::optional<EagerPassList>& list, const Problem& problem) {
  if (!list) return {};
  return {.scale = list->scale,
          .mask = list->mask,
          .padding_mask = list->mask && !problem.causal,
          .dropout = list->dropout};
}

EagerPassList listed(const Problem& problem, const Method& method) {
  return {.scale = method.passes.scale,
          .mask = masks_in_a_pass(problem, method),
          .dropout = method.passes.dropout};
}

std::vector<std::string> names_of(const EagerPassList& list) {
  std::vector<std::string> names;
  if (list.scale) names.emplace_back("scale");
  if (list.mask) names.emplace_back("mask");
  names.emplace_back("softmax");
  if (list.dropout) names.emplace_back("dropout");
  return names;
}

}  // namespace flashsim
