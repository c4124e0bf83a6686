#include "core/study/measure_request.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_reader.hpp"
#include "core/base/nearest.hpp"
#include "core/study/tensor_keys.hpp"

namespace flashsim {
namespace {

constexpr const char* kSchema = "flashsim.measure/1";

/// Keys of an account that a kernel decides.
constexpr std::array kKernelsOwn{"passes",  "tile_q",       "tile_k",    "sram_bytes", "pattern",
                                 "machine", "launch_order", "key_order", "overlap",    "blocks_per_sm"};

template <class T>
void fill(std::optional<T>& over, const std::optional<T>& under) {
  if (!over) over = under;
}

void forget_sizes(AccountRequest& account) {
  for (auto* size : {&account.batch, &account.heads, &account.kv_heads, &account.seq, &account.kv_seq,
                     &account.head_dim}) {
    size->reset();
  }
}

/// dO, and the seed where dO alone was drawn.
void forget_gradient(MeasureRequest& request) {
  request.d_o.reset();
  if (!request.q) return;
  request.seed.reset();
  request.magnitude.reset();
}

}  // namespace

Result<CacheState> cache_state_named(const std::string& name) {
  if (name == name_of(CacheState::cold)) return CacheState::cold;
  if (name == name_of(CacheState::warm)) return CacheState::warm;
  return unknown_name("cache state", name, {"cold", "warm"});
}

MeasureRequest laid_over(MeasureRequest over, MeasureRequest under) {
  if (over.q || over.k || over.v) {
    for (auto* file : {&under.q, &under.k, &under.v}) file->reset();
    under.seed.reset();
    under.magnitude.reset();
    forget_sizes(under.account);
  }
  // The kernel names its algorithm and its pass, and they a kernel; the type may be the kernel's first.
  const bool other_pass = over.account.pass && over.account.pass != under.account.pass;
  const bool other_kernel = over.kernel && over.kernel != under.kernel;
  if (over.account.algorithm || other_pass) under.kernel.reset();
  if (other_kernel) {
    under.account.algorithm.reset();
    under.account.pass.reset();
    under.account.splits.reset();
    under.account.deterministic.reset();
  }
  if (other_pass || other_kernel) {
    under.account.dtype.reset();
    forget_gradient(under);
  }
  over.account = laid_over(over.account, under.account);
  fill(over.kernel, under.kernel);
  fill(over.q, under.q);
  fill(over.k, under.k);
  fill(over.v, under.v);
  fill(over.d_o, under.d_o);
  fill(over.seed, under.seed);
  fill(over.magnitude, under.magnitude);
  fill(over.cache, under.cache);
  fill(over.repeats, under.repeats);
  fill(over.counters, under.counters);
  return over;
}

Result<MeasureRequest> read_measure_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {kSchema});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  MeasureRequest request;
  for (const char* key : kKernelsOwn) {
    if (reader.has(key)) reader.fail({fmt::format("{} is the kernel's own", reader.path_of(key)), ""});
  }
  request.account = read_request_keys(reader);
  request.account.pass = reader.named<Pass>("pass", pass_named);
  request.account.deterministic = reader.flag("deterministic");
  request.kernel = reader.named<KernelChoice>("kernel", kernel_choice_named);
  read_tensor_keys(reader, request);
  request.cache = reader.named<CacheState>("cache", cache_state_named);
  request.repeats = reader.integer("repeats");
  if (request.repeats && (*request.repeats < 1 || *request.repeats > kMostRepeats)) {
    reader.fail({fmt::format("{} must be a whole number from 1 to {}, not {}", reader.path_of("repeats"),
                             kMostRepeats, *request.repeats),
                 ""});
  }
  request.counters = reader.named<CounterSource>("counters", counter_source_named);
  if (auto error = reader.finish()) return *error;
  return request;
}

}  // namespace flashsim
