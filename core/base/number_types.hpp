// The number formats in which tensors are stored and sums are kept.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flashsim {

/// A number format. fp8 is known by its size alone: nothing here computes in it.
enum class NumberType { fp8, fp16, bf16, fp32, fp64 };

inline constexpr std::array kNumberTypes{NumberType::fp8, NumberType::fp16, NumberType::bf16,
                                         NumberType::fp32, NumberType::fp64};

/// Bytes of one element.
constexpr std::int64_t size_of(NumberType type) {
  switch (type) {
    case NumberType::fp8: return 1;
    case NumberType::fp16:
    case NumberType::bf16: return 2;
    case NumberType::fp32: return 4;
    case NumberType::fp64: return 8;
  }
  return 0;
}

constexpr std::string_view name_of(NumberType type) {
  switch (type) {
    case NumberType::fp8: return "fp8";
    case NumberType::fp16: return "fp16";
    case NumberType::bf16: return "bf16";
    case NumberType::fp32: return "fp32";
    case NumberType::fp64: return "fp64";
  }
  return "";
}

/// The type in which sums and statistics are kept: float32, or float64 for float64 storage.
constexpr NumberType accumulation_type(NumberType storage) {
  return storage == NumberType::fp64 ? NumberType::fp64 : NumberType::fp32;
}

constexpr std::optional<NumberType> number_type_named(std::string_view name) {
  for (const NumberType type : kNumberTypes) {
    if (name_of(type) == name) return type;
  }
  return std::nullopt;
}

}  // namespace flashsim
