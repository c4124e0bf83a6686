#include "core/base/number_types.hpp"

#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("every number type is found by its name and by no other") {
  for (const NumberType type : kNumberTypes) CHECK(number_type_named(name_of(type)) == type);
  for (const char* name : {"", "fp", "fp17", "FP16", "fp16 ", "float"}) CHECK_FALSE(number_type_named(name));
}

TEST_CASE("a number type has the bytes that its name says") {
  CHECK(size_of(NumberType::fp8) == 1);
  CHECK(size_of(NumberType::fp16) == 2);
  CHECK(size_of(NumberType::bf16) == 2);
  CHECK(size_of(NumberType::fp32) == 4);
  CHECK(size_of(NumberType::fp64) == 8);
}

TEST_CASE("sums are kept in float32, or in float64 for float64 storage") {
  for (const NumberType type : kNumberTypes) {
    CHECK(accumulation_type(type) == (type == NumberType::fp64 ? NumberType::fp64 : NumberType::fp32));
  }
}

}  // namespace
}  // namespace flashsim
