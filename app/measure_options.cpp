#include "app/measure_options.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/add_option.hpp"
#include "app/option_parser.hpp"
#include "core/base/file.hpp"

namespace flashsim {
namespace {

Result<MeasureRequest> given_measure_request(const AccountOptions& account, const MeasureOptions& options) {
  auto asked = given_request(account);
  if (!asked) return asked.error();
  MeasureRequest request{.account = std::move(asked).value(),
                         .q = options.q,
                         .k = options.k,
                         .v = options.v,
                         .d_o = options.d_o};
  OptionParser parser;
  std::optional<std::int64_t> seed;
  parser.parse(options.kernel, request.kernel, kernel_choice_named);
  parser.whole("--seed", options.seed, 0, std::numeric_limits<std::int64_t>::max(), seed);
  parser.finite("--magnitude", options.magnitude, request.magnitude);
  parser.whole("--repeats", options.repeats, 1, kMostRepeats, request.repeats);
  parser.parse(options.counters, request.counters, counter_source_named);
  if (parser.error()) return *parser.error();
  if (seed) request.seed = static_cast<std::uint64_t>(*seed);
  if (options.cold && options.warm) return Error{"give --cold or --warm, not both", ""};
  if (options.cold) request.cache = CacheState::cold;
  if (options.warm) request.cache = CacheState::warm;
  return request;
}

}  // namespace

void add_measure_options(CLI::App& app, AccountOptions& account, MeasureOptions& options, bool& causal,
                         bool& no_causal) {
  add_text(app, "--kernel", options.kernel,
           "a name (flashsim list kernels), or all of the pass (default: the algorithm's first)")
      ->group("What");
  add_text(app, "--algo", account.algo, "standard, flash2 or split-kv (default flash2)")->group("What");
  add_text(app, "--pass", account.pass, "forward or backward (default: the kernel's, else forward)")
      ->group("What");
  add_text(app, "--seq", account.seq, "N, query length (default 8192)")->group("What");
  add_text(app, "--kv-seq", account.kv_seq, "Nkv, key/value length (default: as --seq)")->group("What");
  add_text(app, "--batch", account.batch, "B (default 1)")->group("What");
  add_text(app, "--heads", account.heads, "H, query heads (default 32)")->group("What");
  add_text(app, "--kv-heads", account.kv_heads, "Hkv, key/value heads (default: as --heads)")->group("What");
  add_text(app, "--head-dim", account.head_dim, "d (default 128)")->group("What");
  add_text(app, "--dtype", account.dtype,
           "storage: fp16, bf16 or fp32 (default: the first that the kernel takes)")
      ->group("What");
  add_switch(app, "--causal", causal, "mask the keys after each query (the default)")->group("What");
  add_switch(app, "--no-causal", no_causal, "every query sees every key")->group("What");
  add_text(app, "--causal-alignment", account.alignment,
           "bottom-right or top-left, where N ≠ Nkv (default bottom-right)")
      ->group("What");
  add_text(app, "--splits", account.splits,
           "of split-kv: into so many parts the keys are split, or auto (the default)")
      ->group("What");
  add_switch(app, "--deterministic", account.deterministic,
             "of the backward pass: no thread block adds to what another made")
      ->group("What");
  add_text(app, "--model", account.model,
           "heads and head dimension of a model: a name (flashsim list models) or a file")
      ->group("What");
  add_text(app, "--q", options.q, "queries from an .npy file: [B, H, N, d], [H, N, d] or [N, d]")
      ->group("Tensors");
  add_text(app, "--k", options.k, "keys from an .npy file")->group("Tensors");
  add_text(app, "--v", options.v, "values from an .npy file")->group("Tensors");
  add_text(app, "--do", options.d_o, "backward: the gradient of the output, shaped as the queries")
      ->group("Tensors");
  add_text(app, "--seed", options.seed, "of what is drawn (default 0)")->group("Tensors");
  add_text(app, "--magnitude", options.magnitude, "draw numbers smaller than this (default 1)")
      ->group("Tensors");
  add_switch(app, "--cold", options.cold, "flush the L2 before each run (the default)")->group("How");
  add_switch(app, "--warm", options.warm, "leave in the L2 what a run before left")->group("How");
  add_text(app, "--repeats", options.repeats, fmt::format("timed runs, 1 to {} (default 15)", kMostRepeats))
      ->group("How");
  add_text(app, "--counters", options.counters,
           "who counts bytes: auto, gpu, instrumented (the kernel itself) or none (default auto)")
      ->group("How");
  add_text(
      app, "--gpu", account.gpu,
      "the model's machine: a name (flashsim list machines) or a file (default: the one of the GPU here)")
      ->group("Where");
  add_text(app, "--input", account.input, "repeat the run of a JSON result; other options lie over it")
      ->group("Output");
}

Result<MeasureRequest> measure_request_of(const AccountOptions& account, const MeasureOptions& options) {
  auto request = given_measure_request(account, options);
  if (!request || !account.input) return request;
  const auto text = read_file(*account.input);
  if (!text) return text.error();
  auto under = read_measure_request(*text, fmt::format("'{}'", *account.input));
  if (!under) return under.error();
  return laid_over(std::move(request).value(), std::move(under).value());
}

}  // namespace flashsim
