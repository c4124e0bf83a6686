#include "core/problem/machine.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "core/problem/library.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using nlohmann::json;
using test::hint_of;
using test::kNoError;
using test::message_of;
using test::TemporaryFolder;

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;

/// The data file of a built-in machine, to be changed.
json machine_file(const std::string& name) {
  return json::parse(find_data("GPU", "machines", name).value().text);
}

/// What find_machine says of a file "m.json" that holds `text`; its folder is left out.
std::string message_for(const std::string& text) {
  const TemporaryFolder folder;
  std::string message = message_of(find_machine(folder.file("m.json", text)));
  const std::string place = folder / "";
  for (std::size_t at = 0; (at = message.find(place)) != std::string::npos;) message.erase(at, place.size());
  return message;
}

std::string message_with(const std::string& key, const json& value) {
  json file = machine_file("a100");
  file[key] = value;
  return message_for(file.dump());
}

TEST_CASE("every built-in machine reads, under the name of its file, with a title and a source") {
  const auto machines = built_in_machines();
  const auto names = built_in_names("machines");
  REQUIRE(machines.size() == names.size());
  REQUIRE(machines.size() >= 12);
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const Machine& machine = machines[i];
    CAPTURE(names[i]);
    CHECK(machine.name == names[i]);
    CHECK(message_of(find_machine(machine.name)) == kNoError);
    CHECK_FALSE(machine.title.empty());
    CHECK_FALSE(machine.vendor.empty());
    CHECK_FALSE(machine.source.empty());
    CHECK(machine.rates == (machine.name.ends_with("-measured") ? "measured" : "datasheet"));
    CHECK(machine.shared_memory_per_block <= machine.shared_memory_per_sm);
    CHECK(machine.flops_per_second.fp32.has_value());
    CHECK(machine.flops_per_second.fp16.has_value());
  }
}

TEST_CASE("no two machines answer to the same name") {
  std::set<std::string> names;
  for (const Machine& machine : built_in_machines()) {
    CHECK(names.insert(machine.name).second);
    for (const std::string& alias : machine.aliases) CHECK(names.insert(alias).second);
  }
}

TEST_CASE("what a machine calls uncertain is a key of its file") {
  for (const Machine& machine : built_in_machines()) {
    const json file = machine_file(machine.name);
    for (std::string key : machine.uncertain) {
      std::replace(key.begin(), key.end(), '.', '/');
      CAPTURE(machine.name, key);
      CHECK(file.contains(json::json_pointer("/" + key)));
    }
  }
}

TEST_CASE("the machines have the figures of their datasheets") {
  struct Row {
    const char* name;
    double gigabytes_per_second;
    std::int64_t sms, shared_kib_per_sm, shared_kib_per_block, l2_mib, clock_mhz, memory_gib;
    double fp32, fp16;
    std::optional<double> tf32, bf16;
  };
  const Row rows[] = {
      {"a100-40", 1555, 108, 164, 163, 40, 1410, 40, 19.5, 312, 156, 312},
      {"a100", 2039, 108, 164, 163, 40, 1410, 80, 19.5, 312, 156, 312},
      {"h100", 3350, 132, 228, 227, 50, 1980, 80, 67, 989, 494, 989},
      {"h200", 4800, 132, 228, 227, 60, 1980, 141, 67, 989, 494, 989},
      {"b200", 8000, 148, 228, 227, 126, 1965, 180, 75, 2250, 1125, 2250},
      {"l4", 300, 58, 100, 99, 48, 2040, 24, 30.3, 121, 60, 121},
      {"l40s", 864, 142, 100, 99, 96, 2520, 48, 91.6, 362, 183, 362},
      {"rtx-4090", 1008, 128, 100, 99, 72, 2520, 24, 82.6, 165, 82.6, 165},
      {"rtx-5090", 1792, 170, 100, 99, 96, 2407, 32, 104.8, 209, 104.8, 209},
      {"v100", 900, 80, 96, 96, 6, 1530, 16, 15.7, 125, {}, {}},
      {"t4", 320, 40, 64, 64, 4, 1590, 16, 8.1, 65, {}, {}},
      {"mi300x", 5300, 304, 64, 64, 4, 2100, 192, 163, 1307, 654, 1307},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto found = find_machine(row.name);
    REQUIRE(message_of(found) == kNoError);
    const Machine& m = *found;
    CHECK(m.memory_bandwidth.value == row.gigabytes_per_second * 1e9);
    CHECK(m.sms == row.sms);
    CHECK(m.shared_memory_per_sm == Bytes(row.shared_kib_per_sm * kKiB));
    CHECK(m.shared_memory_per_block == Bytes(row.shared_kib_per_block * kKiB));
    CHECK(m.l2 == Bytes(row.l2_mib * kMiB));
    CHECK(m.clock_hz == static_cast<double>(row.clock_mhz) * 1e6);
    // The H200's is what a driver told, a little below the datasheet's.
    CHECK(m.memory <= Bytes(row.memory_gib * kGiB));
    CHECK(ratio(m.memory, Bytes(row.memory_gib * kGiB)) > (m.name == "h200" ? 0.99 : 0.999999));
    const auto tera = [](std::optional<double> rate) {
      return rate ? std::optional(*rate / 1e12) : std::nullopt;
    };
    CHECK(tera(m.flops_per_second.fp32) == row.fp32);
    CHECK(tera(m.flops_per_second.fp16) == row.fp16);
    CHECK(tera(m.flops_per_second.tf32) == row.tf32);
    CHECK(tera(m.flops_per_second.bf16) == row.bf16);
    if (m.vendor == "NVIDIA") CHECK(m.registers_per_sm == Bytes(256 * kKiB));
  }
  CHECK(find_machine("a100")->exponentials_per_sm_per_clock == 16);
  CHECK(find_machine("h100")->exponentials_per_sm_per_clock == 16);
}

TEST_CASE("a100 is the part with 80 GB, and a100-80 is another name for it") {
  const auto machine = find_machine("a100");
  REQUIRE(machine);
  CHECK(machine->title == "A100 80 GB");
  const auto alias = find_machine("a100-80");
  REQUIRE(alias);
  CHECK(alias->name == "a100");
  CHECK(alias->memory == machine->memory);
}

TEST_CASE("an unknown GPU is told with the nearest name") {
  const auto found = find_machine("h20O");
  CHECK(message_of(found) == "unknown GPU 'h20O'");
  CHECK(hint_of(found) ==
        "did you mean 'h200'? known: a100, a100-80, a100-40, b200, h100, h200, h200-measured, l4, l40s, "
        "mi300x, rtx-4090, rtx-5090, t4, v100");
}

TEST_CASE("a file of one's own takes the place of a name") {
  const TemporaryFolder folder;
  json file = machine_file("a100");
  file["name"] = "mine";
  file["sms"] = 7;
  file["flops_per_second"]["fp16"] = nullptr;
  file.erase("exponentials_per_sm_per_clock");
  const auto machine = find_machine(folder.file("m.json", file.dump()));
  REQUIRE(message_of(machine) == kNoError);
  CHECK(machine->name == "mine");
  CHECK(machine->sms == 7);
  CHECK_FALSE(machine->flops_per_second.fp16);
  CHECK(machine->flops_per_second.bf16 == 312e12);
  CHECK_FALSE(machine->exponentials_per_sm_per_clock);
}

TEST_CASE("a machine file with an unknown key is refused with the key's path") {
  CHECK(message_with("sm", 3) == "'m.json': unknown key sm");
  json file = machine_file("a100");
  file["flops_per_second"]["fp17"] = 1;
  CHECK(message_for(file.dump()) == "'m.json': unknown key flops_per_second.fp17");
}

TEST_CASE("a machine file that lacks what every machine has is refused") {
  for (const char* key :
       {"memory_bytes", "memory_bytes_per_second", "l2_bytes", "sms", "shared_memory_per_sm_bytes",
        "shared_memory_per_block_bytes", "registers_per_sm_bytes", "blocks_per_sm", "clock_hz"}) {
    json file = machine_file("a100");
    file.erase(key);
    CHECK(message_for(file.dump()) == std::string("'m.json': ") + key + " is missing");
    CHECK(message_with(key, nullptr) == std::string("'m.json': ") + key + " is missing");
    CHECK(message_with(key, 0) == std::string("'m.json': ") + key + " must be at least 1, not 0");
  }
}

TEST_CASE("a machine file of another schema is refused") {
  CHECK(message_with("schema", "flashsim.machine/2") ==
        "'m.json': schema must be \"flashsim.machine/1\", not \"flashsim.machine/2\"");
  CHECK(message_with("schema", nullptr) == "'m.json': schema is missing: it must be \"flashsim.machine/1\"");
  CHECK(message_with("schema", 1) == "'m.json': schema must be a text of one line, not 1");
}

TEST_CASE("products of fragments have a rate of their own on Hopper, below the type's") {
  for (const Machine& machine : built_in_machines()) {
    INFO(machine.name);
    const bool hopper = machine.name.starts_with("h100") || machine.name.starts_with("h200");
    CHECK(machine.fragment_flops_per_second.fp16.has_value() == hopper);
    CHECK(machine.fragment_flops_per_second.bf16.has_value() == hopper);
    if (!hopper) continue;
    CHECK(machine.fragment_flops_per_second.fp16 < machine.flops_per_second.fp16);
    CHECK(machine.fragment_flops_per_second.bf16 < machine.flops_per_second.bf16);
  }
}

TEST_CASE("a machine file with values that make no sense is refused") {
  CHECK(message_with("sms", "108") == "'m.json': sms must be a whole number, not \"108\"");
  CHECK(message_with("sms", -1) == "'m.json': sms must be at least 1, not -1");
  CHECK(message_with("clock_hz", 1.5e9) == "'m.json': clock_hz must be a whole number, not 1500000000.0");
  CHECK(message_with("aliases", "a") == "'m.json': aliases must be a list of texts");
  CHECK(message_with("aliases", {1}) == "'m.json': aliases must be a list of texts");
  CHECK(message_with("aliases", {{"a", "b"}}) == "'m.json': aliases must be a list of texts");
  CHECK(message_with("exponentials_per_sm_per_clock", 0) ==
        "'m.json': exponentials_per_sm_per_clock must be above 0, not 0");
  CHECK(message_with("flops_per_second", {{"fp16", -1}}) ==
        "'m.json': flops_per_second.fp16 must be above 0, not -1");
  CHECK(message_with("fragment_flops_per_second", {{"bf16", 0}}) ==
        "'m.json': fragment_flops_per_second.bf16 must be above 0, not 0");
  CHECK(message_with("fragment_flops_per_second", {{"fp32", 1}}) ==
        "'m.json': unknown key fragment_flops_per_second.fp32");
  CHECK(message_with("flops_per_second", 3) == "'m.json': flops_per_second must be an object, not 3");
  CHECK(message_with("shared_memory_per_block_bytes", 167937) ==
        "'m.json': a block's shared memory (167937 B) is larger than an SM's (167936 B)");
}

TEST_CASE("a machine file that is no JSON object is refused") {
  CHECK(message_for("{\"schema\":") == "'m.json' isn't valid JSON: it ends too early, at line 1, column 11");
  CHECK(message_for("[]") == "'m.json' must be an object, not []");
}

}  // namespace
}  // namespace flashsim
