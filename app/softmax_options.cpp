#include "app/softmax_options.hpp"

#include <fmt/format.h>

#include "app/add_option.hpp"
#include "app/option_parser.hpp"
#include "core/base/file.hpp"

namespace flashsim {

void add_softmax_options(CLI::App& app, SoftmaxOptions& o) {
  add_text(app, "--rows", o.rows, "R, rows of x (default 1024)")->group("What");
  add_text(app, "--columns", o.columns, "V, columns of x (default 128256)")->group("What");
  add_text(app, "--dtype", o.dtype, "of x and y: fp8, fp16, bf16, fp32 or fp64 (default fp16)")
      ->group("What");
  add_text(app, "--top-k", o.top_k, "k: the k largest of each row too")->group("What");
  add_text(app, "--sram", o.sram, "shared memory of a block in place of the GPU's: 192KiB")->group("Where");
  add_text(app, "--gpu", o.gpu, "a name (flashsim list machines) or a file (default a100)")->group("Where");
  add_switch(app, "--count", o.count, "walk and count however long it takes")->group("Output");
  add_text(app, "--input", o.input, "repeat the run of a JSON result; other options lie over it")
      ->group("Output");
}

Result<SoftmaxRequest> softmax_request_of(const SoftmaxOptions& options) {
  SoftmaxRequest request{.gpu = options.gpu, .count_always = options.count};
  OptionParser parser;
  parser.dimension("--rows", options.rows, request.rows);
  parser.dimension("--columns", options.columns, request.columns);
  parser.dimension("--top-k", options.top_k, request.top_k);
  parser.parse(options.dtype, request.dtype,
               [](const std::string& name) { return storage_type_named("type", name); });
  parser.parse(options.sram, request.shared_memory,
               [](const std::string& text) { return parse_size("--sram", text); });
  if (parser.error()) return *parser.error();
  if (!options.input) return request;
  const auto text = read_file(*options.input);
  if (!text) return text.error();
  const auto under = read_softmax_request(*text, fmt::format("'{}'", *options.input));
  if (!under) return under.error();
  return laid_over(request, *under);
}

}  // namespace flashsim
