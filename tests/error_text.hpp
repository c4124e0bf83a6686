// What a user would read of a result: the error and its hint, or that there was none.
#pragma once

#include <string>

#include "core/base/result.hpp"

namespace flashsim::test {

inline const std::string kNoError = "no error";

template <class T>
std::string message_of(const Result<T>& result) {
  return result.ok() ? kNoError : result.error().message;
}
inline std::string message_of(const Outcome& outcome) { return outcome ? outcome->message : kNoError; }

template <class T>
std::string hint_of(const Result<T>& result) {
  return result.ok() ? kNoError : result.error().hint;
}
inline std::string hint_of(const Outcome& outcome) { return outcome ? outcome->hint : kNoError; }

}  // namespace flashsim::test
