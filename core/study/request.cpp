#include "core/study/request.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/json_reader.hpp"

namespace flashsim {
namespace {

template <class T>
void fill(std::optional<T>& over, const std::optional<T>& under) {
  if (!over) over = under;
}

/// What a problem that is `causal`, or isn't, has where no passes are named.
bool is_default(const EagerPassList& passes, bool causal) {
  return passes == EagerPassList{.scale = true, .mask = causal, .dropout = false};
}

/// An array of names, or null.
std::optional<EagerPassList> read_passes(JsonReader& reader) {
  const nlohmann::json* value = reader.value("passes");
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> names;
  if (value->is_array()) {
    for (const nlohmann::json& name : *value) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  if (!value->is_array() || names.size() != value->size()) {
    reader.fail(
        {fmt::format("{} must be a list of names, not {}", reader.path_of("passes"), short_json(*value)),
         ""});
    return std::nullopt;
  }
  auto list = eager_pass_list(names);
  if (list) return *list;
  reader.fail({reader.path_of("passes") + ": " + list.error().message, list.error().hint});
  return std::nullopt;
}

}  // namespace

AccountRequest laid_over(AccountRequest over, const AccountRequest& given) {
  AccountRequest under = given;
  if (over.seq && under.kv_seq == under.seq) under.kv_seq.reset();
  if (over.heads && under.kv_heads == under.heads) under.kv_heads.reset();
  if (over.gpu) under.shared_memory.reset();
  if (over.algorithm) {
    under.passes.reset();
    under.deterministic.reset();
  }
  if (over.causal && under.passes && is_default(*under.passes, under.causal.value_or(Problem{}.causal))) {
    under.passes.reset();
  }
  if (over.pass == Pass::forward) under.deterministic.reset();
  if (over.gpu || over.shared_memory || over.algorithm || over.head_dim || over.dtype) under.tiles = {};
  if (over.algorithm && over.algorithm != under.algorithm) {
    under.splits.reset();
    under.pattern.reset();
  }
  if ((over.seq || over.heads || over.kv_heads) && under.algorithm == Algorithm::split_kv) under.tiles = {};
  fill(over.splits, under.splits);
  fill(over.pattern, under.pattern);
  fill(over.algorithm, under.algorithm);
  fill(over.batch, under.batch);
  fill(over.heads, under.heads);
  fill(over.kv_heads, under.kv_heads);
  fill(over.seq, under.seq);
  fill(over.kv_seq, under.kv_seq);
  fill(over.head_dim, under.head_dim);
  fill(over.dtype, under.dtype);
  fill(over.causal, under.causal);
  fill(over.alignment, under.alignment);
  fill(over.pass, under.pass);
  fill(over.passes, under.passes);
  fill(over.deterministic, under.deterministic);
  fill(over.tiles.query_rows, under.tiles.query_rows);
  fill(over.tiles.key_rows, under.tiles.key_rows);
  fill(over.shared_memory, under.shared_memory);
  fill(over.gpu, under.gpu);
  fill(over.machine, under.machine);
  fill(over.launch_order, under.launch_order);
  fill(over.key_order, under.key_order);
  fill(over.overlap, under.overlap);
  fill(over.blocks_per_sm, under.blocks_per_sm);
  over.count_always = over.count_always || under.count_always;
  over.count_never = over.count_never || under.count_never;
  return over;
}

AccountRequest request_of(const Problem& problem) {
  return {.batch = problem.batch,
          .heads = problem.heads,
          .kv_heads = problem.kv_heads,
          .seq = problem.seq,
          .kv_seq = problem.kv_seq,
          .head_dim = problem.head_dim,
          .dtype = problem.storage,
          .causal = problem.causal,
          .alignment = problem.alignment};
}

Result<Problem> resolve_problem(const AccountRequest& request) {
  Problem problem;
  problem.batch = request.batch.value_or(problem.batch);
  problem.heads = request.heads.value_or(problem.heads);
  problem.kv_heads = request.kv_heads.value_or(problem.heads);
  problem.seq = request.seq.value_or(problem.seq);
  problem.kv_seq = request.kv_seq.value_or(problem.seq);
  problem.head_dim = request.head_dim.value_or(problem.head_dim);
  problem.causal = request.causal.value_or(problem.causal);
  problem.alignment = request.alignment.value_or(problem.alignment);
  problem.storage = request.dtype.value_or(problem.storage);
  if (auto error = problem.validate()) return *error;
  return problem;
}

std::optional<Bytes> read_shared_memory(JsonReader& reader) {
  const auto bytes = reader.integer("sram_bytes");
  if (!bytes) return std::nullopt;
  if (*bytes < 1) {
    reader.fail({fmt::format("{} must be at least 1, not {}", reader.path_of("sram_bytes"), *bytes), ""});
  } else if (Bytes(*bytes).overflowed()) {
    reader.fail({fmt::format("{} is too large: {}", reader.path_of("sram_bytes"), *bytes), ""});
  }
  return Bytes(*bytes);
}

AccountRequest read_request_keys(JsonReader& reader) {
  AccountRequest request;
  request.algorithm = reader.named<Algorithm>("algorithm", algorithm_named);
  request.batch = reader.dimension("batch");
  request.heads = reader.dimension("heads");
  request.kv_heads = reader.dimension("kv_heads");
  request.seq = reader.dimension("seq");
  request.kv_seq = reader.dimension("kv_seq");
  request.head_dim = reader.dimension("head_dim");
  request.dtype = reader.named<NumberType>(
      "dtype", [](const std::string& name) { return storage_type_named("type", name); });
  request.causal = reader.flag("causal");
  request.alignment = reader.named<CausalAlignment>("causal_alignment", causal_alignment_named);
  request.passes = read_passes(reader);
  request.tiles.query_rows = reader.dimension("tile_q");
  request.tiles.key_rows = reader.dimension("tile_k");
  request.shared_memory = read_shared_memory(reader);
  request.gpu = reader.text("gpu");
  request.machine = reader.flag("machine");
  request.launch_order = reader.named<LaunchOrder>("launch_order", launch_order_named);
  request.key_order = reader.named<KeyOrder>("key_order", key_order_named);
  request.overlap = reader.named<Overlap>("overlap", overlap_named);
  request.blocks_per_sm = reader.dimension("blocks_per_sm");
  if (const auto* splits = reader.value("splits"); splits != nullptr && splits->is_string()) {
    request.splits = reader.named<SplitsRequest>("splits", [&](const std::string& text) {
      return text == "auto" ? parse_splits("splits", text)
                            : Error{fmt::format("must be \"auto\" or a whole number, not \"{}\"", text), ""};
    });
  } else if (splits != nullptr) {
    if (const auto count = reader.dimension("splits")) request.splits = SplitsRequest{*count};
  }
  if (const auto* pattern = reader.value("pattern")) {
    auto read = pattern_from_json(*pattern, reader.path_of("pattern"));
    if (read) {
      request.pattern = std::move(read).value();
    } else {
      reader.fail(read.error());
    }
  }
  return request;
}

nlohmann::ordered_json problem_json(const Problem& p) {
  return {{"batch", p.batch},
          {"heads", p.heads},
          {"kv_heads", p.kv_heads},
          {"seq", p.seq},
          {"kv_seq", p.kv_seq},
          {"head_dim", p.head_dim},
          {"dtype", name_of(p.storage)},
          {"causal", p.causal},
          {"causal_alignment", name_of(p.alignment)}};
}

Result<AccountRequest> read_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {"flashsim.account/1", "flashsim.compare/1"});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  AccountRequest request = read_request_keys(reader);
  request.pass = reader.named<Pass>("pass", pass_named);
  request.deterministic = reader.flag("deterministic");
  if (auto error = reader.finish()) return *error;
  return request;
}

}  // namespace flashsim
