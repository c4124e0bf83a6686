// The worked example on the GPU: standard attention and flash at both levels of memory, what each rung of the
// ladder was to bring and brought, and what each switch breaks there.
#include <stdexcept>
#include <utility>

#include "tests/study/measured_rows.hpp"

namespace flashsim {
namespace {

using nlohmann::json;

/// A figure of `flashsim measure`, by its name.
Both figure(const json& kernel, const std::string& name) {
  for (const json& each : kernel.at("measurement").at("figures")) {
    if (each.at("figure") == name) return {each.at("model").get<double>(), each.at("seen").get<double>()};
  }
  throw std::runtime_error("no figure " + name);
}

const json& kernel_of(const json& report) { return report.at("result").at("kernels").at(0); }

Both seconds(const json& kernel) {
  const json& time = kernel.at("measurement").at("time");
  return {time.at("model_seconds").get<double>(), time.at("median_seconds").get<double>()};
}

TEST_CASE("the worked example's counters are the account's, for standard attention and for flash") {
  const json standard = measured("h200_worked_02.json");
  CHECK(kernel_of(standard).at("verdict") == "right");
  CHECK(kernel_of(standard).at("measurement").at("bytes") == "measured");
  // 16.25 GiB as papers count, and what the counters of HBM see.
  const Both papers = figure(kernel_of(standard), "papers_hbm_bytes");
  CHECK(papers.model == 16.25 * 1024 * 1024 * 1024);
  CHECK(std::fabs(papers.off()) <= 0.10);
  for (const char* file : {"h200_worked_03.json", "h200_worked_04.json"}) {
    const json flash = measured(file);
    CHECK(kernel_of(flash).at("verdict") == "right");
    CHECK(kernel_of(flash).at("measurement").at("bytes") == "measured");
    CHECK(std::fabs(figure(kernel_of(flash), "sm_read_bytes").off()) <= 0.01);
    CHECK(std::fabs(figure(kernel_of(flash), "sm_written_bytes").off()) <= 0.02);
    CHECK(std::fabs(figure(kernel_of(flash), "hbm_read_bytes").off()) <= 0.15);
  }
}

/// What a rung's account has now for the problem of a `flashsim measure`.
AccountReport account_now(const json& report, Kernel kernel) {
  const json& in = report.at("input");
  return account_of({.kernel = kernel,
                     .problem = {.batch = in.at("batch"),
                                 .heads = in.at("heads"),
                                 .kv_heads = in.at("kv_heads"),
                                 .seq = in.at("seq"),
                                 .kv_seq = in.at("kv_seq"),
                                 .head_dim = in.at("head_dim"),
                                 .causal = in.at("causal"),
                                 .storage = NumberType::fp16},
                     .gpu = kMeasurements + "h200_calibrated.json",
                     .deterministic = in.at("deterministic").get<bool>(),
                     .count_never = true})
      .value();
}

TEST_CASE("one query without parts, and gradients without additions, are what the model has for them now") {
  const std::pair<const char*, Kernel> files[] = {
      {"h200_decode_04.json", Kernel::flash_tensor},
      {"h200_decode_05.json", Kernel::flash_split_kv},
      {"h200_worked_06.json", Kernel::flash_backward},
      {"h200_worked_06_deterministic.json", Kernel::flash_backward}};
  for (const auto& [file, kernel] : files) {
    INFO(file);
    const json report = measured(file);
    const AccountReport account = account_now(report, kernel);
    const auto off = [&](double model, double seen) { return std::fabs(seen / model - 1); };
    const json& seen = kernel_of(report);
    CHECK(off(number(account.tally().sm_total().read), figure(seen, "sm_read_bytes").seen) <= 0.01);
    CHECK(off(number(account.simulation->after_l2.hbm.read), figure(seen, "hbm_read_bytes").seen) <= 0.15);
    CHECK(off(account.simulation->time->total.value, seconds(seen).seen) <= 0.25);
  }
}

std::string worked_table() {
  const json reports[] = {measured("h200_worked_02.json"), measured("h200_worked_03.json"),
                          measured("h200_worked_04.json")};
  std::string text =
      "| | standard (02, fp16): model | measured | | flash (03, fp32): model | measured | | flash (04, "
      "fp16): model | "
      "measured | |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  const auto line = [&](const char* title, const auto& of, const auto& show) {
    text += fmt::format("| {} |", title);
    for (const json& report : reports) {
      const Both both = of(kernel_of(report));
      text += fmt::format(" {} | {} | {} |", show(both.model), show(both.seen), percent(both));
    }
    text += "\n";
  };
  const auto bytes = [&](const char* title, const std::string& name) {
    line(
        title, [&](const json& kernel) { return figure(kernel, name); }, bytes_text);
  };
  bytes("HBM traffic as papers count, beside HBM's counters", "papers_hbm_bytes");
  bytes("reads into the SMs", "sm_read_bytes");
  bytes("writes out of them", "sm_written_bytes");
  bytes("HBM reads behind the L2", "hbm_read_bytes");
  bytes("HBM writes behind the L2", "hbm_written_bytes");
  bytes("peak memory above the inputs", "peak_memory_bytes");
  line("time", seconds, [](double time) { return seconds_text({time}); });
  return text;
}

/// A rung beside the one that it is held against, on one problem.
struct Gain {
  const char* problem;
  const char* changed;
  const char* before;
  const char* after;
};

constexpr Gain kGains[] = {
    {"worked example", "02 for 01: cuBLAS's products", "h200_worked_01.json", "h200_worked_02.json"},
    {"worked example", "03 for 02: one kernel, S and P stay on the chip, but float32 without tensor units",
     "h200_worked_02.json", "h200_worked_03.json"},
    {"worked example", "04 for 03: fp16, fragments on tensor units", "h200_worked_03.json",
     "h200_worked_04.json"},
    {"one query, 65 536 keys", "05 for 04: a group's heads in one tile, the keys split",
     "h200_decode_04.json", "h200_decode_05.json"},
    {"worked example, backward",
     "06 for 06 deterministic: dQ added in the L2, and S, P and dP made once less",
     "h200_worked_06_deterministic.json", "h200_worked_06.json"},
};

std::string gains_table() {
  std::string text =
      "| problem | what changed | reads into the SMs: model | measured | time: model | measured | faster: "
      "the model "
      "said | it is |\n|---|---|---:|---:|---:|---:|---:|---:|\n";
  for (const Gain& gain : kGains) {
    const json before = measured(gain.before);
    const json after = measured(gain.after);
    const Both then = seconds(kernel_of(before));
    const Both now = seconds(kernel_of(after));
    const Both read = figure(kernel_of(after), "sm_read_bytes");
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} × | {} × |\n", gain.problem, gain.changed,
                        bytes_text(read.model), bytes_text(read.seen), seconds_text({now.model}),
                        seconds_text({now.seen}), three_digits(then.model / now.model),
                        three_digits(then.seen / now.seen));
  }
  return text;
}

std::string wrong_rows(const json& result) {
  const auto count = [](const json& n) { return grouped(n.get<std::int64_t>()); };
  return fmt::format("{} / {}", count(result.at("wrong_rows_o")), count(result.at("wrong_rows_l")));
}

std::string first_wrong(const json& result) {
  const json& first = result.at("first_wrong");
  if (first.is_null()) return "–";
  return fmt::format("head {}, row {}, key tile {}", first.at("head").get<int>(), first.at("row").get<int>(),
                     first.at("key_tile").is_null() ? "–" : first.at("key_tile").dump());
}

std::string error_of(const json& result, const char* key) {
  const json& error = result.at(key);
  if (error.is_string()) return error == "Infinity" ? "∞" : error.get<std::string>();
  return three_digits(error.get<double>());
}

TEST_CASE("each switch breaks the same rows on the GPU as on the CPU, from the same tile on") {
  const json rows = measured("h200_switches.json").at("rows");
  CHECK(rows.size() == 9);
  for (const json& row : rows) {
    INFO(row.at("switch"));
    for (const char* key : {"verdict", "wrong_rows_o", "wrong_rows_l", "first_wrong"}) {
      CHECK(row.at("cuda").at(key) == row.at("cpu").at(key));
    }
    CHECK((row.at("cuda").at("verdict") == "right") == (row.at("switch") == ""));
  }
}

std::string switches_table() {
  std::string text =
      "| switch | wrong rows of O / of L: GPU | CPU | first wrong: GPU | CPU | largest error of O: GPU | CPU "
      "| of L: GPU "
      "| CPU |\n|---|---:|---:|---|---|---:|---:|---:|---:|\n";
  const json report = measured("h200_switches.json");
  for (const json& row : report.at("rows")) {
    const json& gpu = row.at("cuda");
    const json& cpu = row.at("cpu");
    const auto name = row.at("switch").get<std::string>();
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                        name.empty() ? "none" : fmt::format("`{}`", name), wrong_rows(gpu), wrong_rows(cpu),
                        first_wrong(gpu), first_wrong(cpu), error_of(gpu, "max_abs_o"),
                        error_of(cpu, "max_abs_o"), error_of(gpu, "max_abs_l"), error_of(cpu, "max_abs_l"));
  }
  return text;
}

TEST_CASE("the tables of the worked example and of the switches are made of the measurements") {
  check_table("worked", worked_table());
  check_table("gains", gains_table());
  check_table("switches", switches_table());
}

}  // namespace
}  // namespace flashsim
