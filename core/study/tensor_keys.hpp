// The keys of a request's JSON that say where its tensors come from.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "core/base/json_reader.hpp"

namespace flashsim {

/// Reads "q", "k", "v" and "do", paths of .npy files, "seed" and "magnitude" into the members of `request` of
/// those names; errors stay with the reader.
template <class Request>
void read_tensor_keys(JsonReader& reader, Request& request) {
  request.q = reader.text("q");
  request.k = reader.text("k");
  request.v = reader.text("v");
  request.d_o = reader.text("do");
  if (const auto seed = reader.integer("seed")) {
    if (*seed < 0)
      reader.fail({fmt::format("{} must be at least 0, not {}", reader.path_of("seed"), *seed), ""});
    request.seed = static_cast<std::uint64_t>(*seed);
  }
  request.magnitude = reader.number("magnitude");
}

}  // namespace flashsim
