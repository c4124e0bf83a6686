// Each sentence about a difference has figures that bear it out, and without them it isn't said.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/study/fake_device.hpp"

namespace {

using flashsim::Bytes;
using flashsim::CacheState;
using flashsim::CounterReading;
using flashsim::Difference;
using flashsim::Kernel;
using flashsim::KernelReport;
using flashsim::KernelResources;
using flashsim::MeasureHow;
using flashsim::Problem;

const std::string kUnexplained = "not explained by anything that was read";

/// A kernel whose counters and time are what the model says, until a test changes them.
struct Modelled {
  explicit Modelled(Kernel kernel, std::int64_t seq = 200, std::int64_t heads = 2, std::int64_t head_dim = 64)
      : report(flashsim::test::modelled_kernel(kernel, seq, heads, head_dim)) {}

  KernelReport report;
  MeasureHow how;

  [[nodiscard]] flashsim::DeviceMeasurement& measurement() { return *report.measurement; }
  [[nodiscard]] KernelResources& resources() { return measurement().kernels.front(); }
  [[nodiscard]] double model() const { return report.account.simulation->time->total.value; }
  [[nodiscard]] CounterReading& reading(std::string_view what) {
    return flashsim::test::reading_of(measurement(), what);
  }
  void scale(std::string_view what, double by) {
    auto& value = reading(what).value;
    value = std::llround(static_cast<double>(*value) * by);
  }
  [[nodiscard]] std::vector<Difference> differences() {
    report.bytes = byte_figures(report.account, measurement());
    report.time = time_figure(report.account, measurement());
    return differences_of(report, how, report.account.machine);
  }
  /// All that is said of that figure, a line each; empty where it is no more than 5 % off.
  [[nodiscard]] std::string said(const std::string& figure) {
    std::string text;
    for (const Difference& difference : differences()) {
      if (difference.figure != figure) continue;
      for (const std::string& sentence : difference.sentences) text += sentence + "\n";
    }
    return text;
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("up to 5 % off nothing is said, and beyond it something always is") {
  for (const char* what : {"sm_read_bytes", "sm_written_bytes", "hbm_read_bytes"}) {
    INFO(what);
    Modelled m(Kernel::flash_fp32);
    m.scale(what, 1.049);
    CHECK(m.differences().empty());
    m.scale(what, 1.2);
    CHECK(m.said(what) == kUnexplained + "\n");
    m = Modelled(Kernel::flash_fp32);
    m.scale(what, 0.9);
    CHECK(m.said(what) == kUnexplained + "\n");
  }
}

TEST_CASE("bytes over the model are put to local memory where the compiler gave some") {
  Modelled m(Kernel::flash_fp32);
  m.scale("sm_written_bytes", 1.5);
  CHECK_FALSE(has(m.said("sm_written_bytes"), "local memory"));
  m.resources().local_memory_per_thread = Bytes(std::int64_t{48});
  const std::string text = m.said("sm_written_bytes");
  CHECK(has(text, "48 B of local memory a thread"));
  CHECK_FALSE(has(text, kUnexplained));
  // Local memory doesn't make bytes fewer.
  m.scale("sm_written_bytes", 0.5);
  CHECK(m.said("sm_written_bytes") == kUnexplained + "\n");
}

TEST_CASE("L beside the account of standard is told where the excess is L") {
  Modelled m(Kernel::standard, 4, 2, 4);
  auto& written = m.reading("sm_written_bytes").value;
  *written += std::int64_t{2} * 4 * 4;
  CHECK(has(m.said("sm_written_bytes"), "the kernel writes L as well, 32 B"));
  *written += 1000;
  CHECK(m.said("sm_written_bytes") == kUnexplained + "\n");
}

TEST_CASE("writes over the model are put to L's sectors where these can be as much") {
  // One query of 64 heads: 64 · 128 B of O, and 64 rows of L.
  const auto one_query = [] { return Modelled(Kernel::flash_tensor, 1, 64); };
  Modelled m = one_query();
  m.reading("sm_written_bytes").value = 64 * (128 + 32);
  CHECK(m.said("sm_written_bytes") ==
        "L is 4 B a row, and a sector of 32 B crosses whole wherever part of it is stored: up to 1.75 KiB "
        "more for 64 rows; the excess is 1.75 KiB\n");
  m.reading("sm_written_bytes").value = 64 * (128 + 32) + 1;
  CHECK(m.said("sm_written_bytes") == kUnexplained + "\n");
}

TEST_CASE("reads of a product by cuBLAS are put to its tiles, and those of our own kernels aren't") {
  for (const auto& [kernel, expected] :
       {std::pair{Kernel::standard_cublas, true}, {Kernel::standard, false}}) {
    Modelled m(kernel);
    m.scale("sm_read_bytes", 0.6);
    CHECK(has(m.said("sm_read_bytes"), "cuBLAS chooses its own tiles") == expected);
  }
}

TEST_CASE("a warm cache is told where it can have held what is missing, and never when it was cold") {
  Modelled m(Kernel::flash_fp32);
  m.scale("hbm_read_bytes", 0.3);
  CHECK(m.said("hbm_read_bytes") == kUnexplained + "\n");
  m.how.cache = CacheState::warm;
  CHECK(has(m.said("hbm_read_bytes"), "the cache was warm"));
  m.scale("hbm_read_bytes", 10);
  CHECK(m.said("hbm_read_bytes") == kUnexplained + "\n");
}

TEST_CASE("writes that are missing wait in the L2 where they fit it, and not where they don't") {
  Modelled m(Kernel::flash_fp32, 2048, 16);
  m.reading("hbm_written_bytes").value = 1000;
  CHECK(has(m.said("hbm_written_bytes"), "hadn't reached HBM when the kernels ended"));
  // The L2 of an H200 holds 60 MiB.
  m.reading("sm_written_bytes").value = std::int64_t{70} << 20;
  CHECK_FALSE(has(m.said("hbm_written_bytes"), "hadn't reached"));
}

TEST_CASE("writes over the model are what it left in the L2 where that is as much") {
  Modelled m(Kernel::flash_fp32);
  REQUIRE(m.reading("hbm_written_bytes").value == 0);
  m.reading("hbm_written_bytes").value = 100'000;
  CHECK(has(m.said("hbm_written_bytes"), "97.7 KiB more had reached HBM when the kernels ended"));
  m.reading("hbm_written_bytes").value = 200'000;
  CHECK(m.said("hbm_written_bytes") == kUnexplained + "\n");
}

TEST_CASE("what HBM reads more is put to the SMs where they ask for as much more") {
  Modelled m(Kernel::flash_fp32);
  m.scale("hbm_read_bytes", 1.5);
  m.scale("sm_read_bytes", 2);
  CHECK(has(m.said("hbm_read_bytes"), "the SMs read"));
  m.scale("sm_read_bytes", 0.51);
  CHECK(m.said("hbm_read_bytes") == kUnexplained + "\n");
}

TEST_CASE("a peak over the model is the library's workspace where it is as large") {
  Modelled m(Kernel::standard_cublas);
  const Bytes workspace(std::int64_t{32} << 20);
  m.measurement().peak_memory += workspace;
  CHECK(m.said("peak_memory_bytes") == kUnexplained + "\n");
  m.measurement().library_workspace = workspace;
  CHECK(m.said("peak_memory_bytes") ==
        "the excess is the 32.0 MiB that the library was given to work in, to the byte\n");
  m.measurement().peak_memory += workspace;
  const std::string text = m.said("peak_memory_bytes");
  CHECK(has(text, "the excess is 64.0 MiB"));
  CHECK(has(text, "the rest, 32.0 MiB, is " + kUnexplained));
}

TEST_CASE("a difference in time within the machine's launches is put to them") {
  Modelled t(Kernel::flash_fp32);
  t.measurement().seconds = {t.model() + 2.5e-6};
  REQUIRE(2.5e-6 / t.model() > flashsim::kWorthASentence);
  CHECK(has(t.said("seconds"), "machine file has for 1 launch"));
  t.measurement().seconds = {t.model() + 4e-6};
  CHECK(t.said("seconds") == kUnexplained + "\n");
}

TEST_CASE("a lower clock than the machine file's is told with the time at that clock") {
  Modelled t(Kernel::flash_fp32, 1024, 8);
  t.measurement().seconds = {t.model() * 2};
  CHECK(t.said("seconds") == kUnexplained + "\n");
  t.reading("sm_clock_hz").value = 990'000'000;
  const std::string text = t.said("seconds");
  CHECK(has(text, "the SMs ran at 0.990 GHz, and the machine file says 1.98 GHz"));
  CHECK_FALSE(has(text, kUnexplained));
  // A clock that explains a part leaves a rest.
  t.reading("sm_clock_hz").value = 1'800'000'000;
  CHECK(has(t.said("seconds"), "the rest is " + kUnexplained));
  // A higher clock makes nothing slower.
  t.reading("sm_clock_hz").value = 2'100'000'000;
  CHECK(t.said("seconds") == kUnexplained + "\n");
}

TEST_CASE("products without a tensor instruction are told where the model has them on tensor units") {
  Modelled t(Kernel::standard_cublas, 1024, 8);
  t.measurement().seconds = {t.model() * 20};
  CHECK(has(t.said("seconds"), "no tensor instruction was counted"));
  t.reading("tensor_instructions").value = 1;
  CHECK_FALSE(has(t.said("seconds"), "tensor instruction"));
  t.reading("tensor_instructions").value.reset();
  CHECK_FALSE(has(t.said("seconds"), "tensor instruction"));
  // Of kernels on the FMA units the model has none either.
  Modelled plain(Kernel::standard, 1024, 8);
  plain.measurement().seconds = {plain.model() * 20};
  CHECK_FALSE(has(plain.said("seconds"), "tensor instruction"));
}

TEST_CASE("fewer blocks an SM than the model has are told where it was slower") {
  Modelled t(Kernel::flash_fp32, 1024, 8);
  t.measurement().seconds = {t.model() * 2};
  auto& kernel = t.resources();
  kernel.blocks_per_sm += 1;
  CHECK(t.said("seconds") == kUnexplained + "\n");
  t.measurement().seconds = {t.model() / 2};
  CHECK(has(t.said("seconds"), "by the driver, and the model has"));
}
