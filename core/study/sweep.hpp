// The account over ranges of any of its parameters: the Cartesian product of what each runs through, one
// point an account. The closed forms answer; no walk is counted. A point that can't be (tiles that don't fit,
// a count that leaves 64 bits) has its reason in place of figures, and the sweep goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.hpp"
#include "core/study/account.hpp"
#include "core/study/sweep_values.hpp"

namespace flashsim {

/// One parameter of an account. A new one is one more line of sweep_parameters().
struct SweepParameter {
  enum class Kind { dimension, bytes, flag, name };

  std::string_view key;     ///< in JSON, CSV and plots: "kv_heads"
  std::string_view option;  ///< on the command line: "--kv-heads"
  std::string_view title;   ///< on the terminal: "Hkv"
  Kind kind{};
  /// Puts a value, which is of the kind, into a request.
  void (*put)(AccountRequest&, const SweepValue&);
  /// For names alone: the known one that is meant. Errors: unknown.
  Result<std::string> (*known)(const std::string&);
  /// What holds where nothing is given; absent where that follows from other parameters.
  std::optional<SweepValue> otherwise;

  [[nodiscard]] bool numeric() const { return kind == Kind::dimension || kind == Kind::bytes; }
};

/// The parameters in their fixed order, which is the order of points: the first changes slowest, the last
/// fastest.
std::span<const SweepParameter> sweep_parameters();

/// The place of a parameter in that order, by key or by option without its dashes; absent where there is
/// none.
std::optional<std::size_t> sweep_parameter_named(std::string_view name);

/// What `text` says that `parameter` runs through: see sweep_values.hpp. Errors: values that can't be.
Result<std::vector<SweepValue>> parse_sweep_values(const SweepParameter& parameter, const std::string& text);

/// What each parameter runs through, in the order of sweep_parameters(); empty where nothing was given.
struct SweepRequest {
  std::vector<std::vector<SweepValue>> values{sweep_parameters().size()};
};

/// A figure of a point: absent where there is none (no comparison where standard's counts leave 64 bits).
using FigureValue = std::variant<std::monostate, std::int64_t, double, bool>;

struct SweepFigure {
  enum class Unit { bytes, operations, number, flag };

  std::string_view name;   ///< in JSON, CSV and --y: "hbm_total_bytes", as a comparison's CSV names it
  std::string_view title;  ///< "HBM traffic"
  Unit unit{};
  FigureValue (*of)(const AccountReport&);
};

/// Every figure of a point, in a fixed order.
std::span<const SweepFigure> sweep_figures();

/// The place of a figure in that order. Errors: unknown.
Result<std::size_t> sweep_figure_named(std::string_view name);

struct SweepPoint {
  std::optional<Tiling> tiling;      ///< absent where there is an error
  std::vector<FigureValue> figures;  ///< as sweep_figures(); empty where there is an error
  std::optional<Error> error;        ///< why there can be no account here
};

struct SweepReport {
  SweepRequest input;  ///< with the defaults of what wasn't given; empty where that follows from others
  std::vector<std::size_t> swept;  ///< the parameters with several values, in their order
  std::vector<SweepPoint> points;  ///< of the Cartesian product, in the order of sweep_parameters()

  /// The value of a parameter at a point; null where it follows from others.
  [[nodiscard]] const SweepValue* value_at(std::size_t point, std::size_t parameter) const;
  /// The points without an account.
  [[nodiscard]] std::int64_t errors() const;
};

/// The sweep that `request` asks for. Errors: an unknown GPU, more than kMostSweepPoints points.
Result<SweepReport> make_sweep(const SweepRequest& request, const Progress& progress = {});

/// Reads the `input` of a sweep's JSON, or that object alone. `source` names it in errors.
Result<SweepRequest> read_sweep_request(std::string_view text, const std::string& source);

}  // namespace flashsim
