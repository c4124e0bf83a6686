// What a calibration shows, and that its JSON is a machine file: of a GPU that isn't there.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/render/csv.hpp"
#include "app/render/text.hpp"
#include "app/views/calibrate_view.hpp"
#include "core/problem/machine_json.hpp"
#include "tests/app/json_schema.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::CalibrateReport;

/// What no kernel measured is taken over.
flashsim::Machine partly_measured() {
  flashsim::Machine machine = flashsim::find_machine("h200-measured").value();
  std::erase(machine.measured, "launch_seconds");
  return machine;
}

CalibrateReport h200() {
  return {.device = {.name = "NVIDIA H200", .driver = "580", .runtime = "13.0"},
          .machine = partly_measured(),
          .datasheet = flashsim::find_machine("h200").value()};
}

}  // namespace

TEST_CASE("measured and datasheet stand side by side, with their ratio") {
  const std::string text = render_text(calibrate_document(h200()), false);
  INFO(text);
  CHECK(text.find("H200 SXM 141 GB") != std::string::npos);
  CHECK(text.find("4.24 TB/s") != std::string::npos);
  CHECK(text.find("0.882") != std::string::npos);
  CHECK(text.find("taken over") != std::string::npos);
  CalibrateReport alone = h200();
  alone.datasheet.reset();
  CHECK(render_text(calibrate_document(alone), false).find("No machine file fits this GPU") !=
        std::string::npos);
  CHECK(render_csv(calibrate_csv(alone)).starts_with("rate,unit,measured,datasheet,ratio,is_measured\n"));
}

TEST_CASE("the JSON of a calibration follows the schema of machine files") {
  for (const flashsim::Machine& machine : flashsim::built_in_machines()) {
    INFO(machine.name);
    const auto json = nlohmann::json::parse(machine_json(machine).dump());
    CHECK(flashsim::test::schema_violations(json, "flashsim.machine-1").empty());
  }
}
