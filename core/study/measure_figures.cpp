#include "core/study/measure_figures.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

namespace flashsim {
namespace {

std::optional<Bytes> read_of(const DeviceMeasurement& measurement, std::string_view what, bool& missing) {
  for (const CounterReading& reading : measurement.counters) {
    if (reading.what != what) continue;
    if (reading.value) return Bytes(*reading.value);
    missing = measurement.bytes == ByteSource::measured;
  }
  return std::nullopt;
}

}  // namespace

std::string_view ByteFigure::name() const {
  switch (kind) {
    case ByteFigureKind::sm_read: return "sm_read_bytes";
    case ByteFigureKind::sm_written: return "sm_written_bytes";
    case ByteFigureKind::hbm_read: return "hbm_read_bytes";
    case ByteFigureKind::hbm_written: return "hbm_written_bytes";
    case ByteFigureKind::papers_hbm: return "papers_hbm_bytes";
    case ByteFigureKind::peak_memory: return "peak_memory_bytes";
  }
  return "";
}

std::optional<double> ByteFigure::difference() const {
  if (!model || !seen) return std::nullopt;
  if (*model == Bytes()) return *seen == Bytes() ? 0 : std::numeric_limits<double>::infinity();
  return share_off(static_cast<double>(seen->value()), static_cast<double>(model->value()));
}

std::optional<double> TimeFigure::difference() const {
  if (!model || model->value <= 0) return std::nullopt;
  return share_off(median.value, model->value);
}

Bytes lse_beside(const AccountReport& account) {
  if (account.method.pass == Pass::backward) return {};  // where L is an input
  const auto& allocated = account.prediction.allocated;
  const bool has = std::any_of(allocated.begin(), allocated.end(),
                               [](const Alive& tensor) { return tensor.operand == Operand::L; });
  const Problem& p = account.problem;
  return has ? Bytes() : Bytes(Count(p.batch) * p.heads * p.seq * size_of(p.accumulation()));
}

std::vector<ByteFigure> byte_figures(const AccountReport& account, const DeviceMeasurement& measurement) {
  const Flow sm = account.tally().sm_total();
  std::optional<Flow> hbm;
  if (account.simulation) hbm = account.simulation->after_l2.hbm;
  std::vector<ByteFigure> figures{
      {.kind = ByteFigureKind::sm_read, .model = sm.read},
      {.kind = ByteFigureKind::sm_written, .model = sm.written},
      {.kind = ByteFigureKind::hbm_read, .model = hbm ? std::optional(hbm->read) : std::nullopt},
      {.kind = ByteFigureKind::hbm_written, .model = hbm ? std::optional(hbm->written) : std::nullopt}};
  for (ByteFigure& figure : figures) figure.seen = read_of(measurement, figure.name(), figure.missing);
  const ByteFigure& read = figures[2];
  const ByteFigure& written = figures[3];
  ByteFigure papers{.kind = ByteFigureKind::papers_hbm,
                    .model = account.hbm_bytes(),
                    .missing = read.missing || written.missing};
  if (read.seen && written.seen) papers.seen = *read.seen + *written.seen;
  figures.push_back(papers);
  figures.push_back({.kind = ByteFigureKind::peak_memory,
                     .model = account.tally().peak_allocated + lse_beside(account),
                     .seen = measurement.peak_memory});
  return figures;
}

TimeFigure time_figure(const AccountReport& account, const DeviceMeasurement& measurement) {
  std::vector<double> sorted = measurement.seconds;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  const bool odd = sorted.size() % 2 == 1;
  TimeFigure time{.median = {odd ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2},
                  .least = {sorted.front()},
                  .most = {sorted.back()}};
  if (!account.simulation) {
    time.no_model = account.not_simulated;
  } else if (account.simulation->time) {
    time.model = account.simulation->time->total;
  } else {
    time.no_model = account.simulation->no_time;
  }
  return time;
}

}  // namespace flashsim
