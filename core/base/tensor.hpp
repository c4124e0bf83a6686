// Dense row-major tensors [batch, heads, rows, columns] and views of their matrices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flashsim {

/// A view of `rows` × `columns` elements, row-major, rows `stride` elements apart. Passed by value.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;

  [[nodiscard]] T& operator()(std::int64_t row, std::int64_t column) const {
    return data[row * stride + column];
  }
  [[nodiscard]] T* row(std::int64_t r) const { return data + r * stride; }
  operator MatrixView<const T>() const { return {data, rows, columns, stride}; }
};

/// An owning matrix, zero at first.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), data_(static_cast<std::size_t>(rows * columns)) {}

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] MatrixView<T> view() { return {data_.data(), rows_, columns_, columns_}; }
  [[nodiscard]] MatrixView<const T> view() const { return {data_.data(), rows_, columns_, columns_}; }

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<T> data_;
};

/// An owning tensor [batch, heads, rows, columns], row-major, zero at first.
template <class T>
class Tensor4 {
 public:
  Tensor4() = default;
  Tensor4(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t columns)
      : batch_(batch),
        heads_(heads),
        rows_(rows),
        columns_(columns),
        data_(static_cast<std::size_t>(batch * heads * rows * columns)) {}

  [[nodiscard]] std::int64_t batch() const { return batch_; }
  [[nodiscard]] std::int64_t heads() const { return heads_; }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::vector<T>& data() { return data_; }
  [[nodiscard]] const std::vector<T>& data() const { return data_; }

  /// The matrix [rows, columns] of one batch entry and head.
  [[nodiscard]] MatrixView<T> matrix(std::int64_t b, std::int64_t h) {
    return {data_.data() + offset(b, h), rows_, columns_, columns_};
  }
  [[nodiscard]] MatrixView<const T> matrix(std::int64_t b, std::int64_t h) const {
    return {data_.data() + offset(b, h), rows_, columns_, columns_};
  }

 private:
  [[nodiscard]] std::int64_t offset(std::int64_t b, std::int64_t h) const {
    return (b * heads_ + h) * rows_ * columns_;
  }

  std::int64_t batch_ = 0;
  std::int64_t heads_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<T> data_;
};

/// The tensor, each element rounded to another type.
template <class To, class From>
Tensor4<To> converted_tensor(const Tensor4<From>& from) {
  Tensor4<To> to(from.batch(), from.heads(), from.rows(), from.columns());
  std::transform(from.data().begin(), from.data().end(), to.data().begin(),
                 [](From value) { return static_cast<To>(value); });
  return to;
}

}  // namespace flashsim
