#include "app/cache_options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/add_option.hpp"
#include "app/option_parser.hpp"
#include "core/base/file.hpp"
#include "core/problem/model.hpp"

namespace flashsim {

void add_cache_options(CLI::App& app, AccountOptions& account, CacheOptions& options) {
  add_text(app, "--seq", account.seq, "N, length of the context (default 8192)")->group("What");
  add_text(app, "--batch", account.batch, "B, sequences (default 1)")->group("What");
  add_text(app, "--heads", account.heads, "H, query heads (default 32)")->group("What");
  add_text(app, "--kv-heads", account.kv_heads, "Hkv, key/value heads (default: as --heads)")->group("What");
  add_text(app, "--head-dim", account.head_dim, "d (default 128)")->group("What");
  add_text(app, "--layers", options.layers, "layers with a cache (default 1)")->group("What");
  add_text(app, "--dtype", account.dtype, "storage: fp8, fp16, bf16, fp32 or fp64 (default fp16)")
      ->group("What");
  add_text(app, "--model", account.model,
           "heads, head dimension and layers of a model: a name (flashsim list models) or a file")
      ->group("What");
  add_text(app, "--cache-dtype", options.type,
           "fp8, fp16, bf16, fp32, fp64, int8 or int4 (default: as --dtype)")
      ->group("How");
  add_text(app, "--cache-group", options.group,
           "elements of a row that share a scale, in int8 and int4 (default 128)")
      ->group("How");
  add_text(app, "--gpu", account.gpu, "a name (flashsim list machines) or a file (default a100)")
      ->group("Where");
  add_switch(app, "--explain", account.explain, "each figure's formula, and the numbers put into it")
      ->group("Output");
  add_text(app, "--input", account.input, "repeat the run of a JSON result; other options lie over it")
      ->group("Output");
}

Result<CacheRequest> cache_request_of(const AccountOptions& account, const CacheOptions& options) {
  const auto shape = given_request(account);
  if (!shape) return shape.error();
  CacheRequest request{.account = *shape, .layers = {}, .type = {}, .group = {}};
  OptionParser parser;
  parser.dimension("--layers", options.layers, request.layers);
  parser.parse(options.type, request.type, cache_type_named);
  parser.dimension("--cache-group", options.group, request.group);
  if (parser.error()) return *parser.error();
  if (account.model && !request.layers) {
    const auto model = find_model(*account.model);
    if (!model) return model.error();
    request.layers = model->layers;
  }
  if (!account.input) return request;
  const auto text = read_file(*account.input);
  if (!text) return text.error();
  const auto under = read_cache_request(*text, fmt::format("'{}'", *account.input));
  if (!under) return under.error();
  return laid_over(request, *under);
}

}  // namespace flashsim
