// Nested lists of numbers in JSON, to tensors and back.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/attention/comparison.hpp"
#include "core/base/result.hpp"
#include "core/base/tensor.hpp"

namespace flashsim {

/// A tensor from [N][d], [H][N][d] or [B][H][N][d]. `path` is what errors call it. Errors: not a list of
/// those depths, lists of unequal length, an element that isn't a number (or "NaN", "Infinity",
/// "-Infinity").
Result<Tensor4<double>> read_tensor(const nlohmann::json& value, const std::string& path);

/// The tensor as [B][H][N][d].
template <class T>
nlohmann::ordered_json tensor_json(const Tensor4<T>& tensor);

/// One number a row, as L has it: [B][H][N].
template <class T>
nlohmann::ordered_json lse_json(const Tensor4<T>& lse);

/// The place of an element.
nlohmann::ordered_json place_json(const Place& place);

}  // namespace flashsim
