// NumPy's .npy files: tensors in, results out. The format is numpy.lib.format's: a magic text, the version,
// a dictionary in Python's notation that says type, order and shape, and the numbers. Versions 1.0, 2.0 and
// 3.0 are read, of float16, float32 and float64 in either byte order and either order of elements.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/number_types.hpp"
#include "core/base/result.hpp"
#include "core/base/tensor.hpp"

namespace flashsim {

/// What a row of a tensor [B, H, N, d] is in a file.
enum class NpyRow {
  vector,  ///< of d numbers: the file is [B, H, N, d], [H, N, d] or [N, d]
  number,  ///< alone, d = 1, as log-sum-exp has it: the file is [B, H, N], [H, N] or [N]
};

/// What a file says of its tensor.
struct NpyHeader {
  NumberType type = NumberType::fp32;  ///< fp16, fp32 or fp64
  bool big_endian = false;
  bool fortran_order = false;         ///< the first dimension varies fastest
  std::vector<std::int64_t> shape;    ///< as it stands there
  std::array<std::int64_t, 4> sizes;  ///< the shape as [B, H, N, d], 1 for what it lacks
  std::int64_t offset = 0;            ///< bytes before the first number
};

/// The header of a file whose size is what the header says. Errors: the file can't be read, isn't an .npy
/// file of numbers that are read, has other dimensions than `row` asks for, is shorter or longer than its
/// shape.
Result<NpyHeader> read_npy_header(const std::string& path, NpyRow row = NpyRow::vector);

/// The tensor of a file, [B, H, N, d], each element rounded to T = float or double. Takes the tensor's
/// memory and a few MiB. Errors: those of read_npy_header, and too little memory.
template <class T>
Result<Tensor4<T>> read_npy(const std::string& path, NpyRow row = NpyRow::vector);

/// Writes a tensor of T = float or double, row-major, with the last `dimensions` of [B, H, N, d], or of
/// [B, H, N] where a row is a number. What is left out must be 1. The file appears whole or not at all.
template <class T>
Outcome write_npy(const std::string& path, const Tensor4<T>& tensor, int dimensions,
                  NpyRow row = NpyRow::vector);

extern template Result<Tensor4<float>> read_npy(const std::string&, NpyRow);
extern template Result<Tensor4<double>> read_npy(const std::string&, NpyRow);
extern template Outcome write_npy(const std::string&, const Tensor4<float>&, int, NpyRow);
extern template Outcome write_npy(const std::string&, const Tensor4<double>&, int, NpyRow);

}  // namespace flashsim
