// What a measurement shows, and its JSON against its schema: of reports that no GPU made.
#include <string>

#include <nlohmann/json.hpp>

#include "app/render/csv.hpp"
#include "app/render/markdown.hpp"
#include "app/render/text.hpp"
#include "app/views/measure_view.hpp"
#include "tests/app/json_schema.hpp"
#include "tests/catch.hpp"
#include "tests/study/fake_device.hpp"

namespace {

using flashsim::ByteSource;
using flashsim::Kernel;
using flashsim::measure_document;
using flashsim::measure_json;
using flashsim::MeasureReport;
using flashsim::MeasureRequest;
using flashsim::test::FakeDevice;
using flashsim::test::measured;
using flashsim::test::modelled_device;
using flashsim::test::reading_of;
using flashsim::test::schema_violations;
using flashsim::test::small_request;

std::string text_of(const MeasureReport& report) { return render_text(measure_document(report), false); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string violations(const MeasureReport& report) {
  return schema_violations(nlohmann::json::parse(measure_json(report).dump()), "flashsim.measure-1");
}

}  // namespace

TEST_CASE("bytes stand under the name of who counted them") {
  FakeDevice device = modelled_device(small_request());
  const std::string counted = text_of(measured(device, small_request()));
  INFO(counted);
  CHECK(has(counted, "model   measured   difference"));
  CHECK(has(counted, "03_flash_fp32 on NVIDIA H200"));
  CHECK(has(counted, "H200 SXM 141 GB (measured)"));

  device.measurement.bytes = ByteSource::instrumented;
  device.measurement.counters.resize(2);
  device.measurement.no_counters = "the driver refuses";
  device.measurement.remedy = "run it as root";
  const std::string instrumented = text_of(measured(device, small_request()));
  INFO(instrumented);
  CHECK(has(instrumented, "instrumented"));
  CHECK(has(instrumented, "not counted"));
  CHECK(has(instrumented, "Bytes are instrumented: the driver refuses."));
  CHECK(has(instrumented, "To have them measured: run it as root."));

  device.measurement.bytes = ByteSource::modelled;
  device.measurement.counters.clear();
  const std::string modelled = text_of(measured(device, small_request()));
  INFO(modelled);
  CHECK(has(modelled, "modelled"));
  CHECK(has(modelled, "Bytes are modelled: the driver refuses."));
  CHECK_FALSE(has(modelled.substr(0, modelled.find("Time and memory")), "measured  "));
}

TEST_CASE("a counter that the chip hasn't is shown as not available") {
  FakeDevice device = modelled_device(small_request());
  reading_of(device.measurement, "hbm_read_bytes").value.reset();
  reading_of(device.measurement, "tensor_instructions").value.reset();
  const std::string text = text_of(measured(device, small_request()));
  INFO(text);
  CHECK(has(text, "HBM reads"));
  CHECK(has(text, "not available"));
}

TEST_CASE("a wrong kernel shows where it is wrong and no figures") {
  FakeDevice device;
  device.spoil = [](flashsim::DeviceOutputs& out) { out.o[3] = 7; };
  const std::string text = text_of(measured(device, small_request()));
  INFO(text);
  CHECK(has(text, "first O at head 0, row 0, column 3: 7, and the truth is"));
  CHECK(has(text, "not timed"));
  CHECK_FALSE(has(text, "Traffic"));
}

TEST_CASE("differences are told by the name that the table has for the figure") {
  FakeDevice device = modelled_device(small_request());
  reading_of(device.measurement, "sm_read_bytes").value = 1;
  device.measurement.seconds = {1};
  const std::string text = text_of(measured(device, small_request()));
  INFO(text);
  CHECK(has(text, "reads into the SMs, −100 %: not explained by anything that was read"));
  CHECK(has(text, "time, +"));
}

TEST_CASE("several kernels stand side by side at the end, beside the first") {
  const MeasureRequest request = small_request(std::nullopt);
  FakeDevice device = modelled_device(small_request());
  const std::string text = text_of(measured(device, request));
  INFO(text);
  CHECK(has(text, "Side by side"));
  CHECK(text.find("01_standard on") < text.find("02_standard_cublas on"));
  CHECK(text.find("03_flash_fp32 on") < text.find("Side by side"));
  CHECK_FALSE(has(text_of(measured(device, small_request())), "Side by side"));
}

TEST_CASE("the JSON of every kind of measurement follows its schema, and CSV and Markdown are made of it") {
  FakeDevice device = modelled_device(small_request());
  const auto check = [&](const MeasureRequest& request) {
    const MeasureReport report = measured(device, request);
    CHECK(violations(report).empty());
    const std::string csv = render_csv(measure_csv(report));
    CHECK(csv.starts_with("kernel,section,item,quantity,value\n"));
    CHECK(has(render_markdown(measure_document(report)), report.device.name));
    return csv;
  };
  CHECK(has(check(small_request()), "03_flash_fp32,figure,sm_read_bytes,seen,"));
  reading_of(device.measurement, "hbm_written_bytes").value.reset();
  reading_of(device.measurement, "sm_read_bytes").value = 5;
  check(small_request());
  MeasureRequest all = small_request(std::nullopt);
  check(all);
  all.account.dtype = flashsim::NumberType::fp16;
  CHECK(has(check(all), "03_flash_fp32,left_out,,why,"));
  device.measurement.bytes = ByteSource::modelled;
  device.measurement.counters.clear();
  device.measurement.no_counters = "why";
  check(small_request(Kernel::standard));
  check(small_request(Kernel::flash_split_kv));
  check(small_request(Kernel::flash_backward));
  MeasureRequest gradients = small_request(std::nullopt);
  gradients.account.pass = flashsim::Pass::backward;
  gradients.account.deterministic = true;
  const std::string csv = check(gradients);
  CHECK(has(csv, "06_flash_backward,kernel,,pass,backward"));
  CHECK(has(csv, "06_flash_backward,kernel,,deterministic,true"));
  device.spoil = [](flashsim::DeviceOutputs& out) { out.o[0] = 1e30F; };
  check(small_request());
  device.spoil = [](flashsim::DeviceOutputs& out) { out.d_k[0] = 1e30F; };
  check(small_request(Kernel::flash_backward));
}

TEST_CASE("of split-kv the parts are shown, and both of its kernels") {
  MeasureRequest request = small_request(Kernel::flash_split_kv);
  request.account.splits = flashsim::SplitsRequest{2};
  FakeDevice device = modelled_device(request);
  const std::string text = text_of(measured(device, request));
  INFO(text);
  CHECK(has(text, "· 2 parts ·"));
  CHECK(has(text, "kernel attention"));
  CHECK(has(text, "kernel combine"));
}

TEST_CASE("of gradients it is shown how they are made, what was checked, and where one is wrong") {
  MeasureRequest request = small_request(Kernel::flash_backward);
  request.account.deterministic = true;
  FakeDevice device = modelled_device(request);
  const std::string text = text_of(measured(device, request));
  INFO(text);
  CHECK(has(text, "06_flash_backward on NVIDIA H200"));
  CHECK(has(text, "· tiles 64×128 · deterministic ·"));
  CHECK(has(text, "kernel deltas"));
  CHECK(has(text, "kernel query_gradient"));
  CHECK(has(text, "right: all 400 rows of dQ, all 400 rows of dK and dV, and the O and L"));
  device.spoil = [](flashsim::DeviceOutputs& out) { out.d_v[3] = 7; };
  const std::string wrong = text_of(measured(device, request));
  INFO(wrong);
  CHECK(
      has(wrong, "WRONG on 1 of 400 checked rows, first dV at head 0, row 0, column 3: 7, and the truth is"));
  CHECK_FALSE(has(wrong, "Traffic"));
}
