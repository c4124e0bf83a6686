#include "app/options.hpp"

#include <fmt/format.h>

#include "app/option_parser.hpp"
#include "core/base/file.hpp"
#include "core/base/parse.hpp"
#include "core/problem/model.hpp"

namespace flashsim {
Result<AccountRequest> given_request(const AccountOptions& options) {
  AccountRequest request;
  OptionParser parser;
  parser.parse(options.algo, request.algorithm, algorithm_named);
  parser.dimension("--batch", options.batch, request.batch);
  parser.dimension("--heads", options.heads, request.heads);
  parser.dimension("--kv-heads", options.kv_heads, request.kv_heads);
  parser.dimension("--seq", options.seq, request.seq);
  parser.dimension("--kv-seq", options.kv_seq, request.kv_seq);
  parser.dimension("--head-dim", options.head_dim, request.head_dim);
  parser.parse(options.dtype, request.dtype,
               [](const std::string& name) { return storage_type_named("type", name); });
  parser.parse(options.alignment, request.alignment, causal_alignment_named);
  parser.parse(options.pass, request.pass, pass_named);
  parser.parse(options.passes, request.passes, eager_pass_list_from);
  parser.dimension("--tile-q", options.tile_q, request.tiles.query_rows);
  parser.dimension("--tile-k", options.tile_k, request.tiles.key_rows);
  parser.parse(options.sram, request.shared_memory,
               [](const std::string& text) { return parse_size("--sram", text); });
  parser.parse(options.launch_order, request.launch_order, launch_order_named);
  parser.parse(options.key_order, request.key_order, key_order_named);
  parser.parse(options.overlap, request.overlap, overlap_named);
  parser.dimension("--blocks-per-sm", options.blocks_per_sm, request.blocks_per_sm);
  parser.parse(options.splits, request.splits,
               [](const std::string& text) { return parse_splits("--splits", text); });
  parser.parse(options.pattern, request.pattern, parse_pattern);
  if (parser.error()) return *parser.error();
  request.causal = options.causal;
  if (options.deterministic) request.deterministic = true;
  request.gpu = options.gpu;
  if (options.machine) request.machine = true;
  if (options.machine && !options.machine->empty()) {
    if (options.gpu && *options.gpu != *options.machine) {
      return Error{fmt::format("--machine {} and --gpu {} name two machines", *options.machine, *options.gpu),
                   "give --gpu the name, and --machine alone"};
    }
    request.gpu = *options.machine;
  }
  request.count_always = options.count;

  if (options.model) {
    const auto model = find_model(*options.model);
    if (!model) return model.error();
    // Explicit heads without explicit key/value heads mean as many of each.
    if (!request.kv_heads && !request.heads) request.kv_heads = model->kv_heads;
    request.heads = request.heads.value_or(model->heads);
    request.head_dim = request.head_dim.value_or(model->head_dim);
    request.kv_heads = request.kv_heads.value_or(*request.heads);
  }
  return request;
}

Result<AccountRequest> request_of(const AccountOptions& options) {
  auto request = given_request(options);
  if (!request || !options.input) return request;
  const auto text = read_file(*options.input);
  if (!text) return text.error();
  const auto under = read_request(*text, fmt::format("'{}'", *options.input));
  if (!under) return under.error();
  return laid_over(*request, *under);
}

Result<NumberType> compute_type_named(const std::string& name) {
  if (name == "f32" || name == "fp32") return NumberType::fp32;
  if (name == "f64" || name == "fp64") return NumberType::fp64;
  return Error{fmt::format("--compute must be f32 or f64, not '{}'", name), ""};
}

}  // namespace flashsim
