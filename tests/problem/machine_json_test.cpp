// A machine is written as the file that it is read from.
#include "core/problem/machine_json.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "core/base/file.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace {

using flashsim::Machine;
using flashsim::machine_json;

/// Writes the machine and reads it back.
Machine through_a_file(const Machine& machine) {
  const flashsim::test::TemporaryFolder folder;
  const std::string path = folder / "machine.json";
  REQUIRE_FALSE(flashsim::write_file(path, machine_json(machine).dump(2)).has_value());
  auto read = flashsim::find_machine(path);
  REQUIRE(flashsim::test::message_of(read) == flashsim::test::kNoError);
  return std::move(read).value();
}

}  // namespace

TEST_CASE("every built-in machine comes back from its JSON as it went in") {
  for (const Machine& machine : flashsim::built_in_machines()) {
    INFO(machine.name);
    const Machine back = through_a_file(machine);
    CHECK(machine_json(back) == machine_json(machine));
    CHECK(back.l2_bandwidth.has_value() == machine.l2_bandwidth.has_value());
    CHECK(back.launch_seconds == machine.launch_seconds);
    CHECK(back.flops_per_second.fp8 == machine.flops_per_second.fp8);
    CHECK(back.fragment_flops_per_second.fp16 == machine.fragment_flops_per_second.fp16);
    CHECK(back.measured == machine.measured);
  }
}

TEST_CASE("rates that were measured to fractions are written as whole numbers where the file has such") {
  Machine machine = flashsim::built_in_machines().front();
  machine.memory_bandwidth = {4.2049e12 + 0.4};
  machine.clock_hz = 1.7e9 + 0.6;
  machine.flops_per_second.fp32 = 5.08e13 + 0.5;
  machine.exponentials_per_sm_per_clock = 15.75;
  machine.launch_seconds = 2.31e-6;
  const Machine back = through_a_file(machine);
  CHECK(back.memory_bandwidth.value == 4.2049e12);
  CHECK(back.clock_hz == 1.7e9 + 1);
  CHECK(back.exponentials_per_sm_per_clock == 15.75);
  CHECK(back.launch_seconds == 2.31e-6);
}
