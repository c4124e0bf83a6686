#include "core/problem/machine.hpp"

#include <cassert>

#include <fmt/format.h>

#include "core/base/json_reader.hpp"
#include "core/base/nearest.hpp"
#include "core/problem/library.hpp"

namespace flashsim {
namespace {

constexpr const char* kFolder = "machines";
constexpr const char* kSchema = "flashsim.machine/1";
constexpr std::int64_t kMostPartitions = 64;

std::vector<std::string> read_names(JsonReader& reader, const std::string& key) {
  std::vector<std::string> names;
  const nlohmann::json* list = reader.value(key);
  if (list == nullptr) return names;
  bool texts = list->is_array();
  for (const auto& item : *list) {
    texts = texts && is_one_line(item);
    if (texts) names.push_back(item.get<std::string>());
  }
  if (!texts) reader.fail({fmt::format("{} must be a list of texts", reader.path_of(key)), ""});
  return names;
}

/// A size or number that every machine must have, at least `least`.
std::int64_t required(JsonReader& reader, const std::string& key, std::int64_t least = 1) {
  const auto value = reader.integer(key);
  if (!value) {
    reader.fail({fmt::format("{} is missing", reader.path_of(key)), ""});
    return least;
  }
  if (*value < least) {
    reader.fail({fmt::format("{} must be at least {}, not {}", reader.path_of(key), least, *value), ""});
  }
  return *value;
}

std::optional<double> rate(JsonReader& reader, const std::string& key) {
  const auto value = reader.number(key);
  if (value && *value <= 0) {
    reader.fail({fmt::format("{} must be above 0, not {}", reader.path_of(key), *value), ""});
  }
  return value;
}

Result<Machine> read_machine(const NamedText& data) {
  const auto parsed = parse_json(data.text, data.source);
  if (!parsed) return parsed.error();
  JsonReader reader(*parsed, data.source + ": ");
  reader.expect_schema(kSchema);
  Machine machine;
  machine.name = reader.text("name").value_or("");
  machine.aliases = read_names(reader, "aliases");
  machine.title = reader.text("title").value_or(machine.name);
  machine.vendor = reader.text("vendor").value_or("");
  machine.memory = Bytes(required(reader, "memory_bytes"));
  machine.memory_bandwidth = {static_cast<double>(required(reader, "memory_bytes_per_second"))};
  machine.l2 = Bytes(required(reader, "l2_bytes"));
  machine.l2_partitions = reader.has("l2_partitions") ? required(reader, "l2_partitions") : 1;
  if (machine.l2_partitions > kMostPartitions) {
    reader.fail({fmt::format("{} must be at most {}, not {}", reader.path_of("l2_partitions"),
                             kMostPartitions, machine.l2_partitions),
                 ""});
  }
  if (const auto bandwidth = rate(reader, "l2_bytes_per_second")) machine.l2_bandwidth = {*bandwidth};
  machine.sms = required(reader, "sms");
  machine.shared_memory_per_sm = Bytes(required(reader, "shared_memory_per_sm_bytes"));
  machine.shared_memory_per_block = Bytes(required(reader, "shared_memory_per_block_bytes"));
  machine.registers_per_sm = Bytes(required(reader, "registers_per_sm_bytes"));
  machine.blocks_per_sm = required(reader, "blocks_per_sm");
  machine.clock_hz = static_cast<double>(required(reader, "clock_hz"));
  machine.shared_memory_bytes_per_sm_per_clock = rate(reader, "shared_memory_bytes_per_sm_per_clock")
                                                     .value_or(machine.shared_memory_bytes_per_sm_per_clock);
  machine.launch_seconds = rate(reader, "launch_seconds").value_or(machine.launch_seconds);
  machine.exponentials_per_sm_per_clock = rate(reader, "exponentials_per_sm_per_clock");
  if (const nlohmann::json* rates = reader.object("flops_per_second")) {
    JsonReader inner(*rates, reader.path_of("flops_per_second"));
    machine.flops_per_second = {.fp64 = rate(inner, "fp64"),
                                .fp32 = rate(inner, "fp32"),
                                .tf32 = rate(inner, "tf32"),
                                .fp16 = rate(inner, "fp16"),
                                .bf16 = rate(inner, "bf16"),
                                .fp8 = rate(inner, "fp8")};
    if (auto error = inner.finish()) reader.fail(*error);
  }
  if (const nlohmann::json* rates = reader.object("fragment_flops_per_second")) {
    JsonReader inner(*rates, reader.path_of("fragment_flops_per_second"));
    machine.fragment_flops_per_second = {.fp16 = rate(inner, "fp16"), .bf16 = rate(inner, "bf16")};
    if (auto error = inner.finish()) reader.fail(*error);
  }
  machine.rates = reader.text("rates").value_or("datasheet");
  machine.uncertain = read_names(reader, "uncertain");
  machine.measured = read_names(reader, "measured");
  machine.notes = reader.text("notes").value_or("");
  machine.source = reader.text("source").value_or("");
  if (machine.shared_memory_per_block > machine.shared_memory_per_sm) {
    reader.fail({fmt::format("{}: a block's shared memory ({} B) is larger than an SM's ({} B)", data.source,
                             machine.shared_memory_per_block.value(), machine.shared_memory_per_sm.value()),
                 ""});
  }
  if (auto error = reader.finish()) return *error;
  return machine;
}

}  // namespace

std::optional<FlopsPerByte> Machine::balance(NumberType type) const {
  std::optional<double> rate;
  switch (type) {
    case NumberType::fp8: rate = flops_per_second.fp8; break;
    case NumberType::fp16: rate = flops_per_second.fp16; break;
    case NumberType::bf16: rate = flops_per_second.bf16; break;
    case NumberType::fp32: rate = flops_per_second.fp32; break;
    case NumberType::fp64: rate = flops_per_second.fp64; break;
  }
  if (!rate) return std::nullopt;
  return FlopsPerSecond{*rate} / memory_bandwidth;
}

Result<Machine> find_machine(const std::string& name_or_path) {
  const auto data = find_data("GPU", kFolder, name_or_path);
  if (data) return read_machine(*data);
  if (is_path(name_or_path)) return data.error();
  std::vector<std::string> known;
  for (Machine& machine : built_in_machines()) {
    known.push_back(machine.name);
    for (const std::string& alias : machine.aliases) {
      if (alias == name_or_path) return std::move(machine);
      known.push_back(alias);
    }
  }
  return unknown_name("GPU", name_or_path, known);
}

std::vector<Machine> built_in_machines() {
  std::vector<Machine> machines;
  for (const std::string& name : built_in_names(kFolder)) {
    auto machine = read_machine(find_data("GPU", kFolder, name).value());
    assert(machine.ok());
    machines.push_back(std::move(machine).value());
  }
  return machines;
}

}  // namespace flashsim
