// How an account looks.
#pragma once

#include <string>
#include <vector>

#include "app/render/csv.hpp"
#include "app/render/document.hpp"
#include "core/study/account.hpp"

namespace flashsim {

/// "causal", with the alignment where it matters, or "not causal".
std::string mask_text(const Problem& problem);

/// "forward", "backward", or "forward and backward".
std::string pass_text(Pass pass);

/// "B 1 · H 32 · N 8192 · d 128 · fp16 · causal"
std::string problem_text(const Problem& problem);

/// "O 64.0 MiB + L 1.00 MiB"
std::string alive_text(const std::vector<Alive>& alive);
/// " · 12 parts" or " · window:1024", what a method leaves open beside its tiles; "" where there is nothing.
std::string method_text(const Method& method);

/// Each figure with its formula, in symbols and in numbers.
TableBlock explanations_table(const std::vector<ExplainedFigure>& figures);

Document account_document(const AccountReport& report, bool explain);

/// One line a figure: section, item, quantity, value.
CsvTable account_csv(const AccountReport& report, bool explain);

/// The sentence that the check of predicted against counted comes to.
VerdictLine check_line(const AccountReport& report);

}  // namespace flashsim
