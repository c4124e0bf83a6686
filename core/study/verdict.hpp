// What a check against the truth comes to, for replays and runs alike.
#pragma once

#include <string_view>

namespace flashsim {

enum class Verdict {
  right,      ///< within the tolerance
  broken,     ///< wrong, as was asked for
  wrong,      ///< wrong, and nobody asked for it
  undecided,  ///< within a tolerance that is as large as the values themselves
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

}  // namespace flashsim
