// The options of `flashsim softmax`, and what they come to.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "core/base/result.hpp"
#include "core/study/softmax.hpp"

namespace flashsim {

/// The texts that were given; what is absent wasn't.
struct SoftmaxOptions {
  std::optional<std::string> rows, columns, dtype, top_k, sram, gpu, input;
  bool count = false;
};

void add_softmax_options(CLI::App& app, SoftmaxOptions& options);

/// The request that the options make, laid over that of --input. Errors: each value that can't be.
Result<SoftmaxRequest> softmax_request_of(const SoftmaxOptions& options);

}  // namespace flashsim
