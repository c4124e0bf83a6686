// The recorder keeps what each step of an execution left on the chip. A replay is played from these
// frames and from nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/problem/problem.hpp"
#include "core/schedule/chip_values.hpp"
#include "core/schedule/step.hpp"

namespace flashsim {

/// One step, the bytes that it moved, and the values that it changed.
struct Frame {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  Step step;  ///< with its rows narrowed where one row alone is recorded
  Bytes hbm_read;
  Bytes hbm_written;
  std::vector<std::pair<ChipValue, NumberMatrix>> values;

  /// The recorded value of that name, or nullptr.
  [[nodiscard]] const NumberMatrix* find(ChipValue value) const;
};

class Recorder : public StepObserver {
 public:
  /// Records every row, or only steps and values of `row`. Stops keeping values once `most_numbers`
  /// have been kept: overflowed() tells.
  Recorder(const Problem& problem, std::optional<std::int64_t> row, std::int64_t most_numbers);

  void begin_head(std::int64_t batch, std::int64_t head) override;
  void executed(const Step& step, const ChipValues& chip) override;

  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  [[nodiscard]] std::vector<Frame> take_frames() { return std::move(frames_); }
  [[nodiscard]] bool overflowed() const { return kept_ > most_numbers_; }

 private:
  const Problem& problem_;
  std::optional<std::int64_t> row_;
  std::int64_t most_numbers_;
  std::int64_t kept_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t head_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace flashsim
