#include "app/sweep_options.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/add_option.hpp"
#include "app/option_parser.hpp"
#include "core/base/file.hpp"
#include "core/problem/model.hpp"

namespace flashsim {
namespace {

/// Where the text of a parameter stands among the options of an account.
struct ParameterText {
  std::string_view option;
  std::optional<std::string> AccountOptions::*text;
  const char* help;
  const char* group;
};

constexpr std::array kTexts{
    ParameterText{"--algo", &AccountOptions::algo, "", "What"},
    ParameterText{"--seq", &AccountOptions::seq, "N, query length", "What"},
    ParameterText{"--kv-seq", &AccountOptions::kv_seq, "Nkv, key/value length", "What"},
    ParameterText{"--batch", &AccountOptions::batch, "B", "What"},
    ParameterText{"--heads", &AccountOptions::heads, "H, query heads", "What"},
    ParameterText{"--kv-heads", &AccountOptions::kv_heads, "Hkv, key/value heads", "What"},
    ParameterText{"--head-dim", &AccountOptions::head_dim, "d", "What"},
    ParameterText{"--dtype", &AccountOptions::dtype, "storage: fp8, fp16, bf16, fp32 or fp64", "What"},
    ParameterText{"--causal-alignment", &AccountOptions::alignment, "bottom-right or top-left", "What"},
    ParameterText{"--pass", &AccountOptions::pass, "forward, backward or both", "What"},
    ParameterText{"--splits", &AccountOptions::splits, "of split-kv: parts of the keys, or auto", "How"},
    ParameterText{"--tile-q", &AccountOptions::tile_q, "Br, rows of a query tile", "How"},
    ParameterText{"--tile-k", &AccountOptions::tile_k, "Bc, rows of a key/value tile", "How"},
    ParameterText{"--sram", &AccountOptions::sram, "shared memory of a block in place of the GPU's: 16KiB",
                  "How"},
    ParameterText{"--gpu", &AccountOptions::gpu, "names (flashsim list machines) or files", "Where"},
};

constexpr const char* kInputHelp = "repeat the run of a JSON result; other options lie over it";
constexpr const char* kModelHelp =
    "heads and head dimension of a model: a name (flashsim list models) or a file";

std::string algorithms_help() {
  std::string names;
  for (const AlgorithmFacts& facts : kAlgorithms) names += std::string(facts.name) + ", ";
  return names + "or flash for flash2";
}

/// --plot, once for each file.
void add_plot_files(CLI::App& app, std::vector<std::string>& files) {
  const auto take = [&files](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (text.starts_with("--")) throw CLI::ArgumentMismatch("--plot: " + text);
      files.push_back(text);
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--plot", take, "draw into this file, .svg or .vl.json (Vega-Lite); may be given again")
      ->type_size(1)
      ->allow_extra_args(false)
      ->group("Output");
}

/// Explicit heads without explicit key/value heads mean as many of each.
Outcome lay_over_model(AccountOptions& account) {
  const auto model = find_model(*account.model);
  if (!model) return model.error();
  if (!account.kv_heads && !account.heads) account.kv_heads = fmt::format("{}", model->kv_heads);
  if (!account.heads) account.heads = fmt::format("{}", model->heads);
  if (!account.head_dim) account.head_dim = fmt::format("{}", model->head_dim);
  return std::nullopt;
}

}  // namespace

void add_sweep_options(CLI::App& app, AccountOptions& account, SweepOptions& options, bool& no_causal) {
  for (const ParameterText& text : kTexts) {
    const std::string help = text.option == "--algo" ? algorithms_help() : text.help;
    add_text(app, std::string(text.option), account.*text.text, help)->group(text.group);
  }
  // Alone it is the switch of the other commands.
  add_text(app, "--causal", options.causal, "yes, no or both: yes,no (default yes)")
      ->expected(0, 1)
      ->default_str("yes")
      ->group("What");
  add_switch(app, "--no-causal", no_causal, "every query sees every key")->group("What");
  add_text(app, "--model", account.model, kModelHelp)->group("What");
  add_plot_files(app, options.plot.files);
  add_text(app, "--x", options.plot.x, "parameter that is drawn over (default: the number with most values)")
      ->group("Output");
  add_text(app, "--y", options.plot.y, "figure that is drawn (default hbm_total_bytes)")->group("Output");
  add_text(app, "--series", options.plot.series,
           "parameters with a line each: a, b or none (default: all the others)")
      ->group("Output");
  add_text(app, "--input", account.input, kInputHelp)->group("Output");
  app.footer(
      "Every parameter takes a value, a list or a range: 8192  512,1024  512:8192:+512  512:131072:x2\n"
      "Their points are all combinations; the parameter that the table names last changes fastest.\n"
      "Example: flashsim sweep --seq 512:131072:x2 --algo standard,flash2 --plot traffic.svg");
}

Result<SweepRequest> sweep_request_of(const AccountOptions& given, const SweepOptions& options) {
  AccountOptions account = given;
  if (account.model) {
    if (auto error = lay_over_model(account)) return *error;
  }
  SweepRequest request;
  if (account.input) {
    const auto text = read_file(*account.input);
    if (!text) return text.error();
    auto under = read_sweep_request(*text, fmt::format("'{}'", *account.input));
    if (!under) return under.error();
    request = std::move(under).value();
  }
  const auto parameters = sweep_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::optional<std::string> text;
    if (parameters[p].option == "--causal") {
      if (options.causal && account.causal) {
        return Error{"give --causal or --no-causal, not both", "--causal yes,no sweeps over both"};
      }
      text = options.causal;
      if (!text && account.causal) text = *account.causal ? "yes" : "no";
    }
    for (const ParameterText& known : kTexts) {
      if (known.option == parameters[p].option) text = account.*known.text;
    }
    if (!text) continue;
    auto values = parse_sweep_values(parameters[p], *text);
    if (!values) return values.error();
    request.values[p] = std::move(values).value();
  }
  return request;
}

void add_tune_options(CLI::App& app, AccountOptions& account, TuneOptions& options, bool& causal,
                      bool& no_causal) {
  for (const ParameterText& text : kTexts) {
    if (text.option == "--algo" || text.option.starts_with("--tile")) continue;
    add_text(app, std::string(text.option), account.*text.text, text.help)->group(text.group);
  }
  add_switch(app, "--causal", causal, "mask the keys after each query (the default)")->group("What");
  add_switch(app, "--no-causal", no_causal, "every query sees every key")->group("What");
  add_text(app, "--model", account.model, kModelHelp)->group("What");
  add_text(app, "--multiple-of", options.multiple_of, "tile sizes are multiples of this (default 16)")
      ->group("How");
  add_plot_files(app, options.plots);
  add_text(app, "--input", account.input, kInputHelp)->group("Output");
}

Result<TuneRequest> tune_request_of(const AccountOptions& account, const TuneOptions& options) {
  if (account.algo || account.tile_q || account.tile_k) {
    return Error{"tune looks for the tiles of every order: it takes no --algo, --tile-q or --tile-k", ""};
  }
  const auto given = given_request(account);
  if (!given) return given.error();
  TuneRequest request{.account = *given};
  OptionParser parser;
  parser.dimension("--multiple-of", options.multiple_of, request.multiple_of);
  if (parser.error()) return *parser.error();
  if (!account.input) return request;
  const auto text = read_file(*account.input);
  if (!text) return text.error();
  const auto under = read_tune_request(*text, fmt::format("'{}'", *account.input));
  if (!under) return under.error();
  request.account = laid_over(request.account, under->account);
  if (!request.multiple_of) request.multiple_of = under->multiple_of;
  return request;
}

}  // namespace flashsim
