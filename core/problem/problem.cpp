#include "core/problem/problem.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/nearest.hpp"
#include "core/base/parse.hpp"

namespace flashsim {

Result<CausalAlignment> causal_alignment_named(std::string_view name) {
  for (const auto alignment : {CausalAlignment::bottom_right, CausalAlignment::top_left}) {
    if (name_of(alignment) == name) return alignment;
  }
  return unknown_name("causal alignment", name, {"bottom-right", "top-left"});
}

Result<NumberType> storage_type_named(const std::string& what, std::string_view name) {
  if (const auto type = number_type_named(name)) return *type;
  std::vector<std::string> known;
  for (const NumberType type : kNumberTypes) known.emplace_back(name_of(type));
  return unknown_name(what, name, known);
}

double Problem::score_scale() const { return scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim))); }

Outcome Problem::validate() const {
  for (const auto& [name, value] : {std::pair{"batch", batch},
                                    {"heads", heads},
                                    {"kv-heads", kv_heads},
                                    {"seq", seq},
                                    {"kv-seq", kv_seq},
                                    {"head-dim", head_dim}}) {
    if (const auto checked = check_dimension(name, value); !checked) return checked.error();
  }
  if (heads % kv_heads != 0) {
    return Error{fmt::format("{} query heads can't share {} key/value heads evenly", heads, kv_heads),
                 "the number of query heads must be a multiple of the number of key/value heads"};
  }
  return std::nullopt;
}

std::string shape_text(const Problem& problem) {
  std::string text = fmt::format("B {} · H {}", problem.batch, problem.heads);
  if (problem.kv_heads != problem.heads) text += fmt::format(" · Hkv {}", problem.kv_heads);
  text += fmt::format(" · N {}", problem.seq);
  if (problem.kv_seq != problem.seq) text += fmt::format(" · Nkv {}", problem.kv_seq);
  return text + fmt::format(" · d {}", problem.head_dim);
}

}  // namespace flashsim
