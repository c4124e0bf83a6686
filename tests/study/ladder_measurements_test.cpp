// What was measured of each rung of the ladder over many shapes, held to the model as it is now.
#include <algorithm>

#include "tests/study/measured_rows.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

struct RungRows {
  Kernel kernel;
  const char* file;
  const char* table;  ///< its mark in docs/measured.md
  bool tensor;        ///< it runs on tensor units
};

constexpr RungRows kRungs[] = {
    {Kernel::flash_fp32, "h200_ladder_03.json", "shapes", false},
    {Kernel::flash_tensor, "h200_ladder_04.json", "shapes of 04", true},
    {Kernel::flash_split_kv, "h200_ladder_05.json", "shapes of 05", true},
    {Kernel::flash_backward, "h200_ladder_06.json", "shapes of 06", true},
};

TEST_CASE("the flash kernels move and keep what the model has, on every shape that was measured") {
  for (const RungRows& rung : kRungs) {
    const std::vector<Row> rows = rows_of(rung.kernel, rung.file);
    CHECK(rows.size() >= 12);
    for (const Row& r : rows) {
      INFO(rung.file << ": " << r.shape);
      CHECK(std::fabs(r.sm_read.off()) <= 0.01);
      CHECK(std::fabs(r.sm_written.off()) <= 0.02);
      CHECK(std::fabs(r.hbm_read.off()) <= 0.15);
      // The pool hands out whole units of 512 bytes, to each tensor.
      CHECK(r.peak.seen >= r.peak.model);
      CHECK(r.peak.seen < r.peak.model + 6 * 512);
    }
  }
}

TEST_CASE("the flash kernels take the time that the model has, within a quarter, by calibrated rates") {
  for (const RungRows& rung : kRungs) {
    for (const Row& r : rows_of(rung.kernel, rung.file)) {
      INFO(rung.file << ": " << r.shape);
      CHECK(std::fabs(r.seconds.off()) <= 0.25);
    }
  }
}

TEST_CASE("each measurement was right and cold, on the units that the kernel is for, and spilled nothing") {
  for (const RungRows& rung : kRungs) {
    const json report = measured(rung.file);
    for (const char* key : {"gpu", "driver", "date", "command"})
      CHECK_FALSE(report.at(key).get<std::string>().empty());
    for (const json& row : report.at("rows")) {
      INFO(rung.file << ": " << row.dump());
      CHECK(row.at("verdict") == "right");
      CHECK(row.at("bytes") == "measured");
      CHECK((row.at("tensor_instructions") > 0) == rung.tensor);
      for (const json& bytes : row.at("local_memory_bytes_per_thread")) CHECK(bytes == 0);
    }
  }
}

std::string shapes_table(const RungRows& rung) {
  std::string text =
      "| B, H/Hkv, N/Nkv, d | into the SMs | | out of them | | HBM read: model | measured | | HBM written: "
      "model | "
      "measured | time: model | measured | |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const Row& r : rows_of(rung.kernel, rung.file)) {
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", r.shape,
                    bytes_text(r.sm_read.seen), percent(r.sm_read, 2), bytes_text(r.sm_written.seen),
                    percent(r.sm_written, 2), bytes_text(r.hbm_read.model), bytes_text(r.hbm_read.seen),
                    percent(r.hbm_read), bytes_text(r.hbm_written.model), bytes_text(r.hbm_written.seen),
                    seconds_text({r.seconds.model}), seconds_text({r.seconds.seen}), percent(r.seconds, 0));
  }
  return text;
}

TEST_CASE("the tables of the shapes are made of the measurements and of the model as it is") {
  for (const RungRows& rung : kRungs) check_table(rung.table, shapes_table(rung));
}

}  // namespace
}  // namespace flashsim
