#include "core/study/tensor_json.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"

namespace flashsim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMostDimensions = 4;

/// How deep the lists nest, told from their first elements.
std::size_t depth_of(const json& value) {
  std::size_t depth = 0;
  const json* inner = &value;
  while (inner->is_array() && depth <= kMostDimensions) {
    ++depth;
    if (inner->empty()) break;
    inner = &inner->front();
  }
  return depth;
}

/// Fills `out` from lists of `lengths[level]` elements; the first that is otherwise becomes the error.
Outcome flatten(const json& value, const std::string& path,
                const std::array<std::size_t, kMostDimensions>& lengths, std::size_t level,
                std::vector<double>& out) {
  if (level == lengths.size()) {
    const auto number = json_number(value);
    if (!number) return Error{fmt::format("{} must be a number, not {}", path, short_json(value)), ""};
    out.push_back(*number);
    return std::nullopt;
  }
  if (!value.is_array()) {
    return Error{fmt::format("{} must be a list of {}, not {}", path, lengths[level], short_json(value)), ""};
  }
  if (value.size() != lengths[level]) {
    return Error{fmt::format("{} has {} elements where {} are expected", path, value.size(), lengths[level]),
                 ""};
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (auto error = flatten(value[i], fmt::format("{}[{}]", path, i), lengths, level + 1, out)) return error;
  }
  return std::nullopt;
}

/// Lists [batch][head][row] of what `row_json` makes of each row.
template <class T, class RowJson>
ordered_json by_head(const Tensor4<T>& tensor, RowJson row_json) {
  ordered_json batches = ordered_json::array();
  for (std::int64_t b = 0; b < tensor.batch(); ++b) {
    ordered_json heads = ordered_json::array();
    for (std::int64_t h = 0; h < tensor.heads(); ++h) {
      ordered_json rows = ordered_json::array();
      for (std::int64_t r = 0; r < tensor.rows(); ++r) rows.push_back(row_json(tensor.matrix(b, h), r));
      heads.push_back(std::move(rows));
    }
    batches.push_back(std::move(heads));
  }
  return batches;
}

}  // namespace

Result<Tensor4<double>> read_tensor(const json& value, const std::string& path) {
  const std::size_t depth = depth_of(value);
  if (depth < 2 || depth > kMostDimensions) {
    return Error{fmt::format("{} must be nested lists [N][d], [H][N][d] or [B][H][N][d], not {}", path,
                             short_json(value)),
                 ""};
  }
  // Missing outer dimensions are 1.
  std::array<std::size_t, kMostDimensions> lengths{1, 1, 1, 1};
  const std::size_t outermost = kMostDimensions - depth;
  const json* inner = &value;
  for (std::size_t level = outermost; level < kMostDimensions; ++level) {
    lengths[level] = inner->size();
    if (inner->empty()) return Error{fmt::format("{} has an empty list", path), ""};
    inner = &inner->front();
  }
  // The lengths are those of the first lists alone until all have been seen: no memory is taken for them.
  std::vector<double> numbers;
  if (auto error = flatten(value, path, lengths, outermost, numbers)) return *error;
  Tensor4<double> tensor(static_cast<std::int64_t>(lengths[0]), static_cast<std::int64_t>(lengths[1]),
                         static_cast<std::int64_t>(lengths[2]), static_cast<std::int64_t>(lengths[3]));
  tensor.data() = std::move(numbers);
  return tensor;
}

template <class T>
ordered_json tensor_json(const Tensor4<T>& tensor) {
  return by_head(tensor, [](MatrixView<const T> matrix, std::int64_t r) {
    ordered_json row = ordered_json::array();
    for (std::int64_t c = 0; c < matrix.columns; ++c)
      row.push_back(number_json(static_cast<double>(matrix(r, c))));
    return row;
  });
}

template <class T>
ordered_json lse_json(const Tensor4<T>& lse) {
  return by_head(lse, [](MatrixView<const T> matrix, std::int64_t r) {
    return number_json(static_cast<double>(matrix(r, 0)));
  });
}

ordered_json place_json(const Place& place) {
  return {{"batch", place.batch}, {"head", place.head}, {"row", place.row}, {"column", place.column}};
}

template ordered_json tensor_json(const Tensor4<double>&);
template ordered_json tensor_json(const Tensor4<float>&);
template ordered_json lse_json(const Tensor4<double>&);
template ordered_json lse_json(const Tensor4<float>&);

}  // namespace flashsim
