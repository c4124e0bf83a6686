// The parts of the online softmax that can be switched off, to see what each is for.
#pragma once

namespace flashsim {

struct Switches {
  bool subtract_max = true;  ///< off: p = exp(s), and no running maximum is kept
  bool rescale = true;       ///< off: r = 1 for l and O, whatever the maximum does
  [[nodiscard]] bool broken() const { return !subtract_max || !rescale; }
};

}  // namespace flashsim
