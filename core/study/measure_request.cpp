#include "core/study/measure_request.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_reader.hpp"
#include "core/base/nearest.hpp"

namespace flashsim {
namespace {

constexpr const char* kSchema = "flashsim.measure/1";

/// Keys of an account that a kernel decides.
constexpr std::array kKernelsOwn{"passes",    "tile_q",  "tile_k",       "sram_bytes",
                                 "splits",    "pattern", "machine",      "launch_order",
                                 "key_order", "overlap", "blocks_per_sm"};

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
  // The kernel and the algorithm name each other, and the type may be the kernel's first.
  if (over.account.algorithm) under.kernel.reset();
  if (over.kernel && over.kernel != under.kernel) {
    under.account.algorithm.reset();
    under.account.dtype.reset();
  }
  over.account = laid_over(over.account, under.account);
  fill(over.kernel, under.kernel);
  fill(over.q, under.q);
  fill(over.k, under.k);
  fill(over.v, under.v);
  if (!over.q) {
    fill(over.seed, under.seed);
    fill(over.magnitude, under.magnitude);
  }
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
  request.kernel = reader.named<KernelChoice>("kernel", kernel_choice_named);
  request.q = reader.text("q");
  request.k = reader.text("k");
  request.v = reader.text("v");
  if (const auto seed = reader.integer("seed")) {
    if (*seed < 0)
      reader.fail({fmt::format("{} must be at least 0, not {}", reader.path_of("seed"), *seed), ""});
    request.seed = static_cast<std::uint64_t>(*seed);
  }
  request.magnitude = reader.number("magnitude");
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
