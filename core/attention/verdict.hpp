// What is to be said of a result that was held against the truth.
#pragma once

#include <string_view>

namespace flashsim {

enum class Verdict {
  right,      ///< within the tolerance
  broken,     ///< wrong, as was asked for
  wrong,      ///< wrong, and nobody asked for it
  undecided,  ///< within a tolerance that is as large as the result itself
};

constexpr std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::right: return "right";
    case Verdict::broken: return "broken on purpose";
    case Verdict::wrong: return "wrong";
    case Verdict::undecided: return "undecided";
  }
  return "";
}

/// `broken`: something was switched off or broken on purpose.
constexpr Verdict verdict_of(bool agrees, bool says_nothing, bool broken) {
  if (!agrees) return broken ? Verdict::broken : Verdict::wrong;
  return says_nothing ? Verdict::undecided : Verdict::right;
}

}  // namespace flashsim
