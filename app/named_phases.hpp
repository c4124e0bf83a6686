// Progress of work in phases that name themselves: one line after another on standard error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/terminal.hpp"

namespace flashsim {

class NamedPhases {
 public:
  /// `done` of the phase is done, from 0 to 1.
  void show(std::string_view phase, double done) {
    if (!line_ || phase != phase_) {
      phase_ = phase;
      line_.emplace(phase_);
    }
    line_->show(done);
  }
  void finish() { line_.reset(); }

 private:
  std::optional<ProgressLine> line_;
  std::string phase_;
};

}  // namespace flashsim
