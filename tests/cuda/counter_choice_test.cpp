#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuda/counters/counter_choice.hpp"
#include "tests/catch.hpp"

namespace {

using namespace flashsim;
using Listed = std::set<std::string, std::less<>>;

/// What CUPTI lists for a chip, of what concerns us and a little beside it.
const Listed kHopper{"dram__bytes",
                     "dram__bytes_read",
                     "dram__bytes_write",
                     "l1tex__data_pipe_lsu_wavefronts_mem_shared",
                     "l1tex__m_l1tex2xbar_write_bytes",
                     "l1tex__m_xbar2l1tex_read_bytes",
                     "sm__cycles_elapsed",
                     "sm__inst_executed_pipe_tensor",
                     "sm__inst_executed_pipe_tensor_op_gmma",
                     "sm__inst_executed_pipe_xu",
                     "smsp__cycles_elapsed",
                     "smsp__inst_executed_pipe_tensor",
                     "smsp__inst_executed_pipe_xu"};

bool anything(const std::string&) { return true; }

Listed with(Listed listed, const std::string& more) {
  listed.insert(more);
  return listed;
}

Listed without(Listed listed, const std::string& gone) {
  listed.erase(gone);
  return listed;
}

const ChosenCounter& find(const std::vector<ChosenCounter>& chosen, std::string_view what) {
  const auto found = std::ranges::find(chosen, what, &ChosenCounter::what);
  REQUIRE(found != chosen.end());
  return *found;
}

std::vector<std::string> metrics(const Listed& listed, std::string_view what) {
  return find(choose_counters(listed, anything), what).metrics;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("every reading has its place, in the order of reports, whatever the chip lists") {
  for (const Listed& listed : {kHopper, Listed{}}) {
    const auto chosen = choose_counters(listed, anything);
    REQUIRE(chosen.size() == kCounters.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) CHECK(chosen[i].what == kCounters[i]);
  }
}

TEST_CASE("on Hopper every reading has one metric") {
  for (const ChosenCounter& counter : choose_counters(kHopper, anything)) {
    CAPTURE(counter.what);
    CHECK(counter.metrics.size() == 1);
    for (const std::string& metric : counter.metrics) CHECK(kHopper.contains(base_metric(metric)));
  }
  CHECK(metrics(kHopper, "sm_read_bytes") == Names{"l1tex__m_xbar2l1tex_read_bytes.sum"});
  CHECK(metrics(kHopper, "sm_clock_hz") == Names{"sm__cycles_elapsed.avg.per_second"});
}

TEST_CASE("a chip that lists the second name gets the second name") {
  const Listed renamed = with(without(kHopper, "dram__bytes_read"), "dram__bytes_op_read");
  CHECK(metrics(kHopper, "hbm_read_bytes") == Names{"dram__bytes_read.sum"});
  CHECK(metrics(renamed, "hbm_read_bytes") == Names{"dram__bytes_op_read.sum"});
}

TEST_CASE("a chip with two kinds of tensor units has both counted") {
  const Listed two = with(kHopper, "sm__inst_executed_pipe_tc");
  CHECK(metrics(two, "tensor_instructions") ==
        Names{"sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tc.sum"});
}

TEST_CASE("a metric that can't be counted takes no other with it, and another way is tried") {
  const auto before = choose_counters(kHopper, anything);
  for (const std::string& refused : metrics_of(before)) {
    CAPTURE(refused);
    const auto chosen = choose_counters(kHopper, [&](const std::string& m) { return m != refused; });
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (before[i].metrics != Names{refused}) {
        CHECK(chosen[i].metrics == before[i].metrics);
      } else {
        CHECK(std::ranges::find(chosen[i].metrics, refused) == chosen[i].metrics.end());
      }
    }
  }
  const auto chosen =
      choose_counters(kHopper, [](const std::string& m) { return m != "sm__inst_executed_pipe_xu.sum"; });
  CHECK(find(chosen, "exponential_instructions").metrics == Names{"smsp__inst_executed_pipe_xu.sum"});
}

TEST_CASE("only what the chip lists is tried") {
  (void)choose_counters(kHopper, [](const std::string& metric) {
    CHECK(kHopper.contains(base_metric(metric)));
    return false;
  });
}

TEST_CASE("each metric is asked for once") {
  const std::vector<ChosenCounter> chosen{{.what = "a", .metrics = {"x.sum", "y.sum"}},
                                          {.what = "b", .metrics = {}},
                                          {.what = "c", .metrics = {"x.sum"}}};
  CHECK(metrics_of(chosen) == Names{"x.sum", "y.sum"});
}

TEST_CASE("a reading is the sum of its metrics, and names them") {
  const std::vector<ChosenCounter> chosen{{.what = "a", .metrics = {"x.sum"}},
                                          {.what = "b", .metrics = {"x.sum", "y.sum"}}};
  const std::map<std::string, double> values{{"x.sum", 40}, {"y.sum", 2}};
  const auto readings =
      readings_of(chosen, [&](const std::string& metric) { return std::optional(values.at(metric)); });
  REQUIRE(readings.size() == 2);
  CHECK(readings[0].what == "a");
  CHECK(readings[0].metric == "x.sum");
  CHECK(readings[0].value == 40);
  CHECK(readings[1].metric == "x.sum + y.sum");
  CHECK(readings[1].value == 42);
}

TEST_CASE("what isn't known is absent and never 0") {
  const std::vector<ChosenCounter> chosen{{.what = "none", .metrics = {}},
                                          {.what = "one", .metrics = {"x.sum"}},
                                          {.what = "half", .metrics = {"known.sum", "x.sum"}}};
  const double infinite = std::numeric_limits<double>::infinity();
  for (const std::optional<double> x : {std::optional<double>{}, std::optional(std::nan("")),
                                        std::optional(infinite), std::optional(-1.0), std::optional(1e30)}) {
    const auto readings = readings_of(
        chosen, [&](const std::string& metric) { return metric == "known.sum" ? std::optional(0.0) : x; });
    REQUIRE(readings.size() == 3);
    CHECK(readings[0].metric.empty());
    CHECK(readings[1].metric == "x.sum");
    for (const CounterReading& reading : readings) CHECK_FALSE(reading.value);
  }
}

TEST_CASE("a count of nothing is 0") {
  const std::vector<ChosenCounter> chosen{{.what = "a", .metrics = {"x.sum"}}};
  CHECK(readings_of(chosen, [](const std::string&) { return std::optional(0.0); })[0].value == 0);
}
