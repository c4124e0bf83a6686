#include "app/command_line.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/add_option.hpp"
#include "app/commands/commands.hpp"
#include "app/sweep_options.hpp"
#include "core/base/file.hpp"
#include "core/base/nearest.hpp"

namespace flashsim {
namespace {

constexpr const char* kAbout =
    "Attention, byte by byte: what an algorithm moves between HBM and the chip, keeps and computes.\n"
    "Without a command: the account of one algorithm.";
constexpr const char* kExamples =
    "Examples:\n"
    "  flashsim --seq 8192 --algo flash\n"
    "  flashsim compare --model llama-3-8b --seq 32768 --gpu h100\n"
    "  flashsim run --seq 1024 --heads 4\n"
    "  flashsim replay three-token\n"
    "  flashsim sweep --seq 512:131072:x2 --algo standard,flash2 --plot traffic.svg\n"
    "  flashsim cache --model llama-3-8b --batch 16\n"
    "  flashsim softmax --top-k 5\n"
    "  flashsim measure --kernel all --seq 4096\n"
    "  flashsim --algo standard --format json --out traffic.json";

struct CommandLine {
  AccountOptions account;
  ReplayOptions replay;
  RunOptions run;
  SweepOptions sweep;
  TuneOptions tune;
  CacheOptions cache;
  MeasureOptions measure;
  SoftmaxOptions softmax;
  OutputOptions output;
  std::optional<std::string> format, file;
  bool causal = false;
  bool no_causal = false;
  std::string section;
};

void add_output_options(CLI::App& app, CommandLine& line) {
  add_text(app, "--format", line.format, "table, json, csv or markdown (default table)")->group("Output");
  add_text(app, "--out", line.file, "write to this file, whole or not at all")->group("Output");
}

constexpr const char* kAlgorithmHelp = "a name (flashsim list algorithms; default flash2)";
constexpr const char* kInputHelp = "repeat the run of a JSON result; other options lie over it";

/// The options of the problem, the tiles and the machine. `types` are those that --dtype can have.
void add_problem_options(CLI::App& app, CommandLine& line, const std::string& types) {
  AccountOptions& o = line.account;
  add_text(app, "--seq", o.seq, "N, query length (default 8192)")->group("What");
  add_text(app, "--kv-seq", o.kv_seq, "Nkv, key/value length (default: as --seq)")->group("What");
  add_text(app, "--batch", o.batch, "B (default 1)")->group("What");
  add_text(app, "--heads", o.heads, "H, query heads (default 32)")->group("What");
  add_text(app, "--kv-heads", o.kv_heads, "Hkv, key/value heads (default: as --heads)")->group("What");
  add_text(app, "--head-dim", o.head_dim, "d (default 128)")->group("What");
  add_text(app, "--dtype", o.dtype, "storage: " + types)->group("What");
  add_switch(app, "--causal", line.causal, "mask the keys after each query (the default)")->group("What");
  add_switch(app, "--no-causal", line.no_causal, "every query sees every key")->group("What");
  add_text(app, "--causal-alignment", o.alignment,
           "bottom-right or top-left, where N ≠ Nkv (default bottom-right)")
      ->group("What");
  add_text(app, "--model", o.model,
           "heads and head dimension of a model: a name (flashsim list models) or a file")
      ->group("What");
  add_text(
      app, "--passes", o.passes,
      "of eager, which are passes of their own: of scale, mask, softmax, dropout (default: scale, softmax, "
      "and mask where causal)")
      ->group("How");
  add_text(app, "--tile-q", o.tile_q, "Br, rows of a query tile (default: chosen)")->group("How");
  add_text(app, "--tile-k", o.tile_k, "Bc, rows of a key/value tile (default: chosen)")->group("How");
  add_text(app, "--splits", o.splits, "split-kv: S, parts of the keys, or auto (the default)")->group("How");
  add_text(app, "--pattern", o.pattern, "block-sparse: window:W, strided:C or a file.json")->group("How");
  add_text(app, "--sram", o.sram, "shared memory of a block in place of the GPU's: 192KiB")->group("How");
  add_text(app, "--gpu", o.gpu, "a name (flashsim list machines) or a file (default a100)")->group("Where");
}

/// --machine, and the habits of a kernel that it asks for.
void add_machine_options(CLI::App& app, CommandLine& line) {
  AccountOptions& o = line.account;
  app.add_option_function<std::vector<std::string>>(
         "--machine",
         [&o](const std::vector<std::string>& given) { o.machine = given.empty() ? "" : given.front(); },
         "HBM traffic after L2, and time: of the --gpu, or of the one named here")
      ->expected(0, 1)
      ->option_text("[NAME]")
      ->group("Where");
  add_text(
      app, "--launch-order", o.launch_order,
      "of thread blocks: rows, longest-first, heads-first, longest-of-all-first or persistent (default rows)")
      ->group("Where");
  add_text(app, "--key-order", o.key_order, "of a block's key tiles: forward or reverse (default forward)")
      ->group("Where");
  add_text(app, "--overlap", o.overlap,
           "of products and softmax in a block: overlapped or serial (default overlapped)")
      ->group("Where");
  add_text(app, "--blocks-per-sm", o.blocks_per_sm, "thread blocks an SM holds (default: what fits)")
      ->group("Where");
}

/// The options of an account; `chooses` adds --algo.
void add_account_options(CLI::App& app, CommandLine& line, bool chooses) {
  AccountOptions& o = line.account;
  if (chooses) add_text(app, "--algo", o.algo, kAlgorithmHelp)->group("What");
  add_problem_options(app, line, "fp8, fp16, bf16, fp32 or fp64 (default fp16)");
  add_machine_options(app, line);
  add_text(app, "--pass", o.pass, "forward, backward or both (default forward)")->group("What");
  add_switch(app, "--deterministic", o.deterministic,
             "of flash2: dQ in a kernel of its own, nothing added in HBM")
      ->group("How");
  add_switch(app, "--count", o.count, "walk and count however long it takes")->group("Output");
  add_switch(app, "--explain", o.explain, "each figure's formula, and the numbers put into it")
      ->group("Output");
  add_text(app, "--input", o.input, kInputHelp)->group("Output");
  add_output_options(app, line);
}

void add_run_options(CLI::App& app, CommandLine& line) {
  RunOptions& o = line.run;
  app.add_option("scenario", o.scenario, "tensors of a scenario: a name (flashsim list scenarios) or a file");
  add_text(app, "--algo", line.account.algo, kAlgorithmHelp)->group("What");
  add_problem_options(app, line, "fp16, bf16, fp32 or fp64 (default: as --compute)");
  add_switch(app, "--backward", o.backward, "the gradients too (standard and flash2)")->group("What");
  add_switch(app, "--deterministic", line.account.deterministic,
             "of --device cuda --backward: no thread block adds to what another made")
      ->group("How");
  add_text(app, "--scale", o.scale, "factor on Q Kᵀ (default 1/√d)")->group("What");
  add_text(app, "--q", o.q, "queries from an .npy file: [B, H, N, d], [H, N, d] or [N, d]")->group("Tensors");
  add_text(app, "--k", o.k, "keys from an .npy file")->group("Tensors");
  add_text(app, "--v", o.v, "values from an .npy file")->group("Tensors");
  add_text(app, "--do", o.d_o, "the output's gradient from an .npy file")->group("Tensors");
  add_text(app, "--seed", o.seed, "of what is drawn (default 0)")->group("Tensors");
  add_text(app, "--magnitude", o.magnitude,
           "draw numbers smaller than this (default 1); of a scenario: multiply every score by it")
      ->group("Tensors");
  add_text(app, "--save", o.save, "write o.npy, lse.npy and the gradients into this folder")->group("Output");
  add_text(app, "--device", o.device, "cpu, or cuda: a kernel on the GPU here (default cpu)")->group("Where");
  add_text(app, "--kernel", o.kernel,
           "of --device cuda: a name (default: the algorithm's first that takes the type)")
      ->group("Where");
  add_text(app, "--compute", o.compute, "f32 or f64 (default f32, or as the tensors are)")->group("How");
  add_text(app, "--threads", o.threads, "1 to 1024 (default: the processor's)")->group("How");
  add_switch(app, "--no-rescale", o.no_rescale, "r = 1")->group("Break it");
  add_switch(app, "--no-subtract-max", o.no_subtract_max, "p = exp(s)")->group("Break it");
  add_text(app, "--fault", o.fault, "a fault of real kernels (flashsim list faults)")->group("Break it");
  add_text(app, "--accumulate", o.accumulate,
           "compute or storage: the type that sums are rounded to (default compute)")
      ->group("Break it");
  add_switch(app, "--explain", line.account.explain, "derive the tolerances, with the numbers put in")
      ->group("Output");
  add_text(app, "--input", line.account.input, kInputHelp)->group("Output");
  add_output_options(app, line);
}

void add_replay_options(CLI::App& app, CommandLine& line) {
  ReplayOptions& o = line.replay;
  app.add_option("scenario", o.scenario, "a name (flashsim list scenarios) or a file");
  add_text(app, "--algo", o.algo, "flash1 or flash2 (default flash2)")->group("How");
  add_text(app, "--row", o.row, "this row alone")->group("How");
  add_text(app, "--tile-q", o.tile_q, "rows of a query tile")->group("How");
  add_text(app, "--tile-k", o.tile_k, "rows of a key/value tile")->group("How");
  add_text(app, "--magnitude", o.magnitude, "multiply every score by this")->group("How");
  add_text(app, "--compute", o.compute, "f32 or f64")->group("How");
  add_switch(app, "--no-rescale", o.no_rescale, "break it: r = 1")->group("How");
  add_switch(app, "--no-subtract-max", o.no_subtract_max, "break it: p = exp(s)")->group("How");
  add_switch(app, "--step", o.step, "wait for a key after each page")->group("Output");
  add_text(app, "--input", o.input, kInputHelp)->group("Output");
  add_output_options(app, line);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_fnames()) names.push_back("--" + name);
  }
  return names;
}

/// What nobody took: a mistyped command or option.
Error unexpected(const std::string& given, const CLI::App& app, const std::vector<std::string>& commands) {
  if (given.starts_with("-")) {
    const std::string name = given.substr(0, given.find('='));
    const std::string nearest = nearest_name(name, option_names(app));
    return {fmt::format("unknown option '{}'", name),
            nearest.empty() ? fmt::format("{} --help lists them", app.get_name())
                            : fmt::format("did you mean '{}'?", nearest)};
  }
  if (app.get_parent() == nullptr) return unknown_name("command", given, commands);
  return {fmt::format("unexpected argument '{}'", given), ""};
}

Result<int> dispatch(const CLI::App& app, CommandLine& line) {
  line.output.format = line.format.value_or("table");
  line.output.file = line.file;
  if (line.causal && line.no_causal) return Error{"give --causal or --no-causal, not both", ""};
  if (line.causal || line.no_causal) line.account.causal = line.causal;
  if (auto error = check_format(line.output.format)) return *error;
  if (line.file) {
    if (auto error = check_writable(*line.file)) return *error;
  }
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? "" : chosen.front()->get_name();
  if (command == "compare") return compare_command(line.account, line.output);
  if (command == "run") return run_command(line.account, line.run, line.output);
  if (command == "softmax") return softmax_command(line.softmax, line.output);
  if (command == "replay") return replay_command(line.replay, line.output);
  if (command == "sweep") return sweep_command(line.account, line.sweep, line.output);
  if (command == "tune") return tune_command(line.account, line.tune, line.output);
  if (command == "cache") return cache_command(line.account, line.cache, line.output);
  if (command == "measure") return measure_command(line.account, line.measure, line.output);
  if (command == "calibrate") return calibrate_command(line.output);
  if (command == "list") return list_command(line.section, line.output);
  return account_command(line.account, line.output);
}

/// Options of the account stand before a command that doesn't take them.
Outcome misplaced(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return std::nullopt;
  const std::vector<std::string> known = option_names(*chosen.front());
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error{fmt::format("{} takes no {}", chosen.front()->get_name(), name), ""};
    }
  }
  return std::nullopt;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CommandLine line;
  CLI::App app{kAbout, "flashsim"};
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("flashsim ") + FLASHSIM_VERSION);
  app.require_subcommand(0, 1);
  app.allow_extras();
  add_account_options(app, line, true);
  CLI::App* compare = app.add_subcommand("compare", "every algorithm side by side");
  add_account_options(*compare, line, false);
  CLI::App* replay = app.add_subcommand("replay", "a scenario step by step");
  add_replay_options(*replay, line);
  CLI::App* run =
      app.add_subcommand("run", "execute on the CPU or the GPU, and hold the result against the truth");
  add_run_options(*run, line);
  CLI::App* sweep = app.add_subcommand("sweep", "the account over ranges of any parameter, and its plot");
  add_sweep_options(*sweep, line.account, line.sweep, line.no_causal);
  add_output_options(*sweep, line);
  CLI::App* tune =
      app.add_subcommand("tune", "the best tile for a size of on-chip memory, beside its bounds");
  add_tune_options(*tune, line.account, line.tune, line.causal, line.no_causal);
  add_output_options(*tune, line);
  CLI::App* cache =
      app.add_subcommand("cache", "the KV cache beside the memory that flash removes, and a decode step");
  add_cache_options(*cache, line.account, line.cache);
  add_output_options(*cache, line);
  CLI::App* softmax = app.add_subcommand("softmax", "a softmax by itself: naive, safe, online, with top-k");
  add_softmax_options(*softmax, line.softmax);
  add_output_options(*softmax, line);
  CLI::App* measure =
      app.add_subcommand("measure", "kernels on the GPU here: counters and time beside the model");
  add_measure_options(*measure, line.account, line.measure, line.causal, line.no_causal);
  add_output_options(*measure, line);
  CLI::App* calibrate =
      app.add_subcommand("calibrate", "the GPU's own rates, measured; --out FILE writes its machine file");
  add_output_options(*calibrate, line);
  CLI::App* list = app.add_subcommand(
      "list", "algorithms, machines, models, scenarios, switches, faults, kernels, devices");
  list->add_option("section", line.section, "one of these alone");
  add_output_options(*list, line);
  std::vector<std::string> commands;
  for (CLI::App* sub : {compare, run, replay, sweep, tune, cache, softmax, measure, calibrate, list}) {
    sub->allow_extras();
    commands.push_back(sub->get_name());
  }

  const auto fail = [](const Error& error) {
    print_error(error);
    return kBadInput;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ArgumentMismatch& mismatch) {
    const std::string text = mismatch.what();
    const bool of_switch = text.find("flag override") != std::string::npos;
    const std::string given = text.substr(0, text.find_first_of(": ="));
    const std::string name = (given.starts_with("-") ? "" : "--") + given;
    return fail({fmt::format("{} {}", name, of_switch ? "takes no value" : "needs a value"), ""});
  } catch (const std::exception& error) {
    return fail({error.what(), ""});
  }
  const auto chosen = app.get_subcommands();
  for (const CLI::App* each : {static_cast<const CLI::App*>(&app),
                               chosen.empty() ? nullptr : static_cast<const CLI::App*>(chosen.front())}) {
    if (each == nullptr) continue;
    const auto extras = each->remaining();
    if (!extras.empty()) return fail(unexpected(extras.front(), *each, commands));
  }
  if (auto error = misplaced(app)) return fail(*error);
  const auto status = dispatch(app, line);
  return status ? *status : fail(status.error());
}

}  // namespace flashsim
