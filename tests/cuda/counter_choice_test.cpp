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
                     "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2",
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

ChosenCounter chosen_for(const Listed& listed, std::string_view what) {
  const auto chosen = choose_counters(listed, anything);
  const auto found = std::ranges::find(chosen, what, &ChosenCounter::what);
  REQUIRE(found != chosen.end());
  return *found;
}

bool uses(const ChosenCounter& counter, const std::string& metric) {
  return counter.metric == metric || counter.less == metric;
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

TEST_CASE("on Hopper every reading has a metric that is listed") {
  for (const ChosenCounter& counter : choose_counters(kHopper, anything)) {
    CAPTURE(counter.what);
    CHECK(kHopper.contains(base_metric(counter.metric)));
  }
  CHECK(chosen_for(kHopper, "sm_read_bytes").metric == "l1tex__m_xbar2l1tex_read_bytes.sum");
  CHECK(chosen_for(kHopper, "sm_clock_hz").metric == "sm__cycles_elapsed.avg.per_second");
}

TEST_CASE("a chip that lists the second name gets the second name") {
  const Listed renamed = with(without(kHopper, "dram__bytes_read"), "dram__bytes_op_read");
  CHECK(chosen_for(kHopper, "hbm_read_bytes").metric == "dram__bytes_read.sum");
  CHECK(chosen_for(renamed, "hbm_read_bytes").metric == "dram__bytes_op_read.sum");
}

TEST_CASE("where the tensor units also run what is no matrix product, that is taken off") {
  const std::string product = "sm__inst_executed_pipe_tensor.sum";
  const std::string other = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum";
  const ChosenCounter hopper = chosen_for(kHopper, "tensor_instructions");
  CHECK(hopper.metric == product);
  CHECK(hopper.less == other);
  const ChosenCounter plain =
      chosen_for(without(kHopper, std::string(base_metric(other))), "tensor_instructions");
  CHECK(plain.metric == product);
  CHECK(plain.less.empty());
}

TEST_CASE("a metric that can't be counted takes its reading with it and no other") {
  const auto before = choose_counters(kHopper, anything);
  for (const ChosenCounter& counter : before) {
    for (const std::string& refused : {counter.metric, counter.less}) {
      if (refused.empty()) continue;
      CAPTURE(refused);
      const auto after = choose_counters(kHopper, [&](const std::string& m) { return m != refused; });
      REQUIRE(after.size() == before.size());
      for (std::size_t i = 0; i < after.size(); ++i) {
        CHECK(after[i].metric == (uses(before[i], refused) ? "" : before[i].metric));
        CHECK(after[i].less == (uses(before[i], refused) ? "" : before[i].less));
      }
    }
  }
}

TEST_CASE("only what the chip lists is tried") {
  (void)choose_counters(kHopper, [](const std::string& metric) {
    CHECK(kHopper.contains(base_metric(metric)));
    return false;
  });
}

TEST_CASE("each metric is asked for once, and a rate in runs of its own") {
  const std::vector<ChosenCounter> chosen{{.what = "a", .metric = "x.sum", .less = "y.sum"},
                                          {.what = "b", .metric = "", .less = ""},
                                          {.what = "c", .metric = "z.avg.per_second", .less = ""},
                                          {.what = "d", .metric = "x.sum", .less = ""}};
  CHECK(groups_of(chosen) == std::vector<Names>{{"z.avg.per_second"}, {"x.sum", "y.sum"}});
  CHECK(groups_of({}).empty());
}

TEST_CASE("a reading names what it is made of, and is what it says") {
  const std::vector<ChosenCounter> chosen{{.what = "a", .metric = "x.sum", .less = ""},
                                          {.what = "b", .metric = "x.sum", .less = "y.sum"}};
  const std::map<std::string, double> values{{"x.sum", 44}, {"y.sum", 2}};
  const auto readings =
      readings_of(chosen, [&](const std::string& metric) { return std::optional(values.at(metric)); });
  REQUIRE(readings.size() == 2);
  CHECK(readings[0].what == "a");
  CHECK(readings[0].metric == "x.sum");
  CHECK(readings[0].value == 44);
  CHECK(readings[1].metric == "x.sum - y.sum");
  CHECK(readings[1].value == 42);
}

TEST_CASE("what isn't known is absent and never 0") {
  const std::vector<ChosenCounter> chosen{{.what = "none", .metric = "", .less = ""},
                                          {.what = "one", .metric = "x.sum", .less = ""},
                                          {.what = "part", .metric = "known.sum", .less = "x.sum"},
                                          {.what = "rest", .metric = "x.sum", .less = "known.sum"}};
  const double infinite = std::numeric_limits<double>::infinity();
  for (const std::optional<double> x :
       {std::optional<double>{}, std::optional(std::nan("")), std::optional(infinite)}) {
    const auto readings = readings_of(
        chosen, [&](const std::string& metric) { return metric == "known.sum" ? std::optional(9.0) : x; });
    REQUIRE(readings.size() == chosen.size());
    CHECK(readings[0].metric.empty());
    CHECK(readings[1].metric == "x.sum");
    for (const CounterReading& reading : readings) CHECK_FALSE(reading.value);
  }
}

TEST_CASE("what is no count has no value") {
  const std::vector<ChosenCounter> chosen{{.what = "a", .metric = "x.sum", .less = ""}};
  const auto reading = [&](double x) {
    return readings_of(chosen, [&](const std::string&) { return std::optional(x); }).at(0).value;
  };
  CHECK(reading(0) == 0);
  CHECK(reading(1.25) == 1);
  CHECK_FALSE(reading(-1));
  CHECK_FALSE(reading(1e30));
}
