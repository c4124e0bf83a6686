#include "core/problem/operands.hpp"

#include <set>
#include <string_view>

#include "core/problem/operation.hpp"
#include "tests/catch.hpp"

namespace flashsim {
namespace {

TEST_CASE("every operand and every operation has a name of its own") {
  std::set<std::string_view> names;
  for (const Operand operand : kOperands) CHECK(names.insert(name_of(operand)).second);
  for (const Operation operation : kOperations) CHECK(names.insert(name_of(operation)).second);
  CHECK(names.count("") == 0);
}

TEST_CASE("operands and operations stand at their own index") {
  for (std::size_t i = 0; i < kOperands.size(); ++i) CHECK(static_cast<std::size_t>(kOperands[i]) == i);
  for (std::size_t i = 0; i < kOperations.size(); ++i) CHECK(static_cast<std::size_t>(kOperations[i]) == i);
}

TEST_CASE("tensors take the storage type's size and statistics the accumulation type's") {
  Problem p;
  for (const NumberType storage : kNumberTypes) {
    p.storage = storage;
    for (const Operand tensor : {Operand::Q, Operand::K, Operand::V, Operand::S, Operand::P, Operand::O}) {
      CHECK(element_size(tensor, p) == size_of(storage));
    }
    for (const Operand statistic : {Operand::L, Operand::m, Operand::l}) {
      CHECK(element_size(statistic, p) == (storage == NumberType::fp64 ? 8 : 4));
    }
  }
}

TEST_CASE("grouped heads share the storage of keys and values, and of nothing else") {
  const Problem p{.batch = 3,
                  .heads = 8,
                  .kv_heads = 2,
                  .seq = 5,
                  .kv_seq = 7,
                  .head_dim = 11,
                  .storage = NumberType::fp16};
  CHECK(whole_size(Operand::Q, p) == Bytes(3 * 8 * 5 * 11 * 2));
  CHECK(whole_size(Operand::K, p) == Bytes(3 * 2 * 7 * 11 * 2));
  CHECK(whole_size(Operand::V, p) == Bytes(3 * 2 * 7 * 11 * 2));
  CHECK(whole_size(Operand::S, p) == Bytes(3 * 8 * 5 * 7 * 2));
  CHECK(whole_size(Operand::P, p) == Bytes(3 * 8 * 5 * 7 * 2));
  CHECK(whole_size(Operand::O, p) == Bytes(3 * 8 * 5 * 11 * 2));
  CHECK(whole_size(Operand::L, p) == Bytes(3 * 8 * 5 * 4));
  CHECK(whole_size(Operand::m, p) == Bytes(3 * 8 * 5 * 4));
  CHECK(whole_size(Operand::l, p) == Bytes(3 * 8 * 5 * 4));
}

TEST_CASE("tensors of more than 2^32 bytes have their true sizes") {
  Problem p{
      .batch = 64, .heads = 16, .kv_heads = 16, .seq = 2048, .kv_seq = 2048, .storage = NumberType::fp8};
  CHECK(whole_size(Operand::S, p) == Bytes(4294967296));
  p = {.batch = 8, .heads = 28, .kv_heads = 28, .seq = 4096, .kv_seq = 4096, .storage = NumberType::fp8};
  CHECK(whole_size(Operand::S, p) == Bytes(3758096384));
  p = {.batch = 8300,
       .heads = 128,
       .kv_heads = 128,
       .seq = 16,
       .kv_seq = 16,
       .head_dim = 128,
       .storage = NumberType::fp8};
  CHECK(whole_size(Operand::Q, p) == Bytes(2175795200));
  CHECK(whole_size(Operand::K, p) == Bytes(2175795200));
}

TEST_CASE("a tensor whose size leaves 64 bits is overflowed, not wrapped") {
  const std::int64_t largest = std::int64_t{1} << 40;
  const Problem p{.batch = 1, .heads = 1, .kv_heads = 1, .seq = largest, .kv_seq = largest, .head_dim = 1};
  CHECK(whole_size(Operand::S, p).overflowed());
  CHECK_FALSE(whole_size(Operand::Q, p).overflowed());
}

}  // namespace
}  // namespace flashsim
