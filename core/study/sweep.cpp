#include "core/study/sweep.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/nearest.hpp"
#include "core/base/quantity_text.hpp"

namespace flashsim {
namespace {

using Kind = SweepParameter::Kind;

std::int64_t number_of(const SweepValue& value) { return std::get<std::int64_t>(value); }
const std::string& name_in(const SweepValue& value) { return std::get<std::string>(value); }

/// The name that a lookup knows something by.
template <class T>
Result<std::string> known_as(const Result<T>& found, std::string_view (*name)(T)) {
  if (!found) return found.error();
  return std::string(name(*found));
}

Result<std::string> known_algorithm(const std::string& given) {
  return known_as<Algorithm>(algorithm_named(given), [](Algorithm a) { return facts_of(a).name; });
}

Result<std::string> known_type(const std::string& given) {
  return known_as<NumberType>(storage_type_named("type", given), [](NumberType t) { return name_of(t); });
}

Result<std::string> known_alignment(const std::string& given) {
  return known_as<CausalAlignment>(causal_alignment_named(given),
                                   [](CausalAlignment a) { return name_of(a); });
}

Result<std::string> known_pass(const std::string& given) {
  return known_as<Pass>(pass_named(given), [](Pass pass) { return name_of(pass); });
}

Result<std::string> known_splits(const std::string& given) {
  const auto splits = parse_splits("--splits", given);
  if (!splits) return splits.error();
  return given;
}

Result<std::string> known_gpu(const std::string& given) {
  const auto machine = find_machine(given);
  if (!machine) return machine.error();
  return given;
}

template <std::optional<std::int64_t> AccountRequest::*field>
void put_dimension(AccountRequest& request, const SweepValue& value) {
  request.*field = number_of(value);
}

std::vector<SweepParameter> make_parameters() {
  const Problem usual;
  return {
      {"algorithm", "--algo", "algorithm", Kind::name,
       [](AccountRequest& r, const SweepValue& v) { r.algorithm = algorithm_named(name_in(v)).value(); },
       known_algorithm, std::string(facts_of(Algorithm::flash2).name)},
      {"gpu", "--gpu", "GPU", Kind::name, [](AccountRequest& r, const SweepValue& v) { r.gpu = name_in(v); },
       known_gpu, std::string("a100")},
      {"dtype", "--dtype", "type", Kind::name,
       [](AccountRequest& r, const SweepValue& v) {
         r.dtype = storage_type_named("type", name_in(v)).value();
       },
       known_type, std::string(name_of(usual.storage))},
      {"causal", "--causal", "causal", Kind::flag,
       [](AccountRequest& r, const SweepValue& v) { r.causal = std::get<bool>(v); }, nullptr, usual.causal},
      {"causal_alignment", "--causal-alignment", "alignment", Kind::name,
       [](AccountRequest& r, const SweepValue& v) {
         r.alignment = causal_alignment_named(name_in(v)).value();
       },
       known_alignment, std::string(name_of(usual.alignment))},
      {"pass", "--pass", "pass", Kind::name,
       [](AccountRequest& r, const SweepValue& v) { r.pass = pass_named(name_in(v)).value(); }, known_pass,
       std::nullopt},
      {"splits", "--splits", "parts", Kind::name,
       [](AccountRequest& r, const SweepValue& v) {
         r.splits = parse_splits("--splits", name_in(v)).value();
       },
       known_splits, std::nullopt},
      {"batch", "--batch", "B", Kind::dimension, put_dimension<&AccountRequest::batch>, nullptr, usual.batch},
      {"heads", "--heads", "H", Kind::dimension, put_dimension<&AccountRequest::heads>, nullptr, usual.heads},
      {"kv_heads", "--kv-heads", "Hkv", Kind::dimension, put_dimension<&AccountRequest::kv_heads>, nullptr,
       std::nullopt},
      {"head_dim", "--head-dim", "d", Kind::dimension, put_dimension<&AccountRequest::head_dim>, nullptr,
       usual.head_dim},
      {"seq", "--seq", "N", Kind::dimension, put_dimension<&AccountRequest::seq>, nullptr, usual.seq},
      {"kv_seq", "--kv-seq", "Nkv", Kind::dimension, put_dimension<&AccountRequest::kv_seq>, nullptr,
       std::nullopt},
      {"sram_bytes", "--sram", "SRAM", Kind::bytes,
       [](AccountRequest& r, const SweepValue& v) { r.shared_memory = Bytes(number_of(v)); }, nullptr,
       std::nullopt},
      {"tile_q", "--tile-q", "Br", Kind::dimension,
       [](AccountRequest& r, const SweepValue& v) { r.tiles.query_rows = number_of(v); }, nullptr,
       std::nullopt},
      {"tile_k", "--tile-k", "Bc", Kind::dimension,
       [](AccountRequest& r, const SweepValue& v) { r.tiles.key_rows = number_of(v); }, nullptr,
       std::nullopt},
  };
}

using Unit = SweepFigure::Unit;
using Report = AccountReport;

/// The figures, named as a comparison's CSV names them.
constexpr SweepFigure kFigures[] = {
    {"hbm_read_bytes", "HBM read", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().hbm_total().read.value(); }},
    {"hbm_write_bytes", "HBM written", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().hbm_total().written.value(); }},
    {"hbm_total_bytes", "HBM traffic", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.hbm_bytes().value(); }},
    {"hbm_of_standard", "HBM traffic, of standard's", Unit::number,
     [](const Report& r) -> FigureValue {
       if (!r.standard) return std::monostate();
       return ratio(r.hbm_bytes(), r.standard->hbm);
     }},
    {"sm_read_bytes", "SM read", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().sm_total().read.value(); }},
    {"sm_write_bytes", "SM written", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().sm_total().written.value(); }},
    {"sram_read_bytes", "SRAM read", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().sram_total().read.value(); }},
    {"sram_write_bytes", "SRAM written", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().sram_total().written.value(); }},
    {"peak_intermediate_bytes", "peak intermediate", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.peak_intermediate().value(); }},
    {"peak_allocated_bytes", "peak allocated", Unit::bytes,
     [](const Report& r) -> FigureValue { return r.tally().peak_allocated.value(); }},
    {"flops_paper", "FLOPs as papers count", Unit::operations,
     [](const Report& r) -> FigureValue { return r.flops.paper.value().value(); }},
    {"flops_exact", "exact FLOPs", Unit::operations,
     [](const Report& r) -> FigureValue { return r.flops.exact.value().value(); }},
    {"flops_executed", "executed FLOPs", Unit::operations,
     [](const Report& r) -> FigureValue { return r.tally().work.products.value(); }},
    {"flops_rescale", "rescaling FLOPs", Unit::operations,
     [](const Report& r) -> FigureValue { return r.tally().work.rescale.value(); }},
    {"exponentials", "exponentials", Unit::operations,
     [](const Report& r) -> FigureValue { return r.tally().work.exponentials.value(); }},
    {"flops_per_hbm_byte", "exact FLOPs a byte of HBM traffic", Unit::number,
     [](const Report& r) -> FigureValue { return r.intensity().value; }},
    {"blocks", "thread blocks", Unit::operations,
     [](const Report& r) -> FigureValue { return r.kernels.front().blocks.value(); }},
    {"blocks_per_sm", "blocks per SM", Unit::number,
     [](const Report& r) -> FigureValue { return r.kernels.front().blocks_per_sm; }},
    {"waves", "waves", Unit::number, [](const Report& r) -> FigureValue { return r.kernels.front().waves; }},
    {"sm_share", "share of SMs at work", Unit::number,
     [](const Report& r) -> FigureValue { return r.kernels.front().sm_share; }},
    {"fits_memory", "fits the GPU's memory", Unit::flag,
     [](const Report& r) -> FigureValue { return r.fits_memory(); }},
};

/// Machines that were read once already.
class KnownMachines {
 public:
  Result<Machine> find(const std::string& name) {
    const auto known = machines_.find(name);
    if (known != machines_.end()) return known->second;
    auto machine = find_machine(name);
    if (machine) machines_.emplace(name, *machine);
    return machine;
  }

 private:
  std::map<std::string, Machine> machines_;
};

/// The number of points, or kMostSweepPoints + 1 and more where it is larger.
Result<std::int64_t> points_of(const SweepRequest& request) {
  Count points = 1;
  for (const auto& values : request.values) {
    if (!values.empty()) points = points * Count(static_cast<std::int64_t>(values.size()));
  }
  if (points <= Count(kMostSweepPoints)) return points.value();
  const std::string number = points.overflowed() ? "more than 2⁶³" : grouped(points.value());
  return Error{
      fmt::format("the sweep has {} points, and at most {} are allowed", number, grouped(kMostSweepPoints)),
      "take larger steps, or sweep fewer parameters at once"};
}

SweepPoint point_of(const AccountRequest& request, const AccountSources& sources) {
  const auto account = make_account(request, {}, sources);
  if (!account) return {.error = account.error()};
  SweepPoint point{.tiling = account->method.tiling};
  point.figures.reserve(std::size(kFigures));
  for (const SweepFigure& figure : kFigures) point.figures.push_back(figure.of(*account));
  return point;
}

}  // namespace

std::span<const SweepParameter> sweep_parameters() {
  static const std::vector<SweepParameter> parameters = make_parameters();
  return parameters;
}

std::span<const SweepFigure> sweep_figures() { return kFigures; }

std::optional<std::size_t> sweep_parameter_named(std::string_view name) {
  const auto parameters = sweep_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (name == parameters[p].key || name == parameters[p].option.substr(2)) return p;
  }
  return std::nullopt;
}

Result<std::size_t> sweep_figure_named(std::string_view name) {
  std::vector<std::string> known;
  for (std::size_t f = 0; f < std::size(kFigures); ++f) {
    if (kFigures[f].name == name) return f;
    known.emplace_back(kFigures[f].name);
  }
  return unknown_name("figure", name, known);
}

Result<std::vector<SweepValue>> parse_sweep_values(const SweepParameter& parameter, const std::string& text) {
  std::vector<SweepValue> values;
  if (parameter.numeric()) {
    const auto numbers = parse_sweep_numbers(
        parameter.option, text, parameter.kind == Kind::bytes ? RangeOf::bytes : RangeOf::dimensions);
    if (!numbers) return numbers.error();
    values.assign(numbers->begin(), numbers->end());
    return values;
  }
  const auto names = parse_sweep_names(parameter.option, text);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    SweepValue value;
    if (parameter.kind == Kind::flag) {
      if (name != "yes" && name != "no") {
        return Error{fmt::format("{} must be yes or no, not '{}'", parameter.option, name), ""};
      }
      value = name == "yes";
    } else {
      const auto known = parameter.known(name);
      if (!known) return known.error();
      value = *known;
    }
    // Two names may mean one thing.
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
  }
  return values;
}

const SweepValue* SweepReport::value_at(std::size_t point, std::size_t parameter) const {
  const auto& own = input.values[parameter];
  if (own.empty()) return nullptr;
  for (std::size_t p = input.values.size() - 1; p > parameter; --p) {
    point /= std::max<std::size_t>(input.values[p].size(), 1);
  }
  return &own[point % own.size()];
}

std::int64_t SweepReport::errors() const {
  return std::count_if(points.begin(), points.end(), [](const SweepPoint& p) { return p.error.has_value(); });
}

Result<SweepReport> make_sweep(const SweepRequest& request, const Progress& progress) {
  SweepReport report{.input = request};
  const auto parameters = sweep_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    auto& values = report.input.values[p];
    if (values.empty() && parameters[p].otherwise) values.push_back(*parameters[p].otherwise);
    if (values.size() > 1) report.swept.push_back(p);
  }
  const auto count = points_of(report.input);
  if (!count) return count.error();

  KnownMachines machines;
  const AccountSources sources{.predict = &predict_unexplained,
                               .machine = [&](const std::string& name) { return machines.find(name); }};
  const auto points = static_cast<std::size_t>(*count);
  report.points.reserve(points);
  for (std::size_t point = 0; point < points; ++point) {
    AccountRequest one{.count_never = true};
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (const SweepValue* value = report.value_at(point, p)) parameters[p].put(one, *value);
    }
    report.points.push_back(point_of(one, sources));
    if (progress) progress(static_cast<double>(point + 1) / static_cast<double>(points));
  }
  return report;
}

}  // namespace flashsim
