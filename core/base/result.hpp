// Errors as values.
//
// Wrong input and a wrong environment are ordinary outcomes and travel as Result<T>; a broken
// invariant of our own is an assertion.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace flashsim {

/// What was wrong, with the value, and how to put it right (empty where there is no advice).
struct Error {
  std::string message;
  std::string hint;
};

/// A T, or the Error that stands in its place.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return assert(ok()), *std::get_if<0>(&held_); }
  [[nodiscard]] const T& value() const& { return assert(ok()), *std::get_if<0>(&held_); }
  [[nodiscard]] T&& value() && { return assert(ok()), std::move(*std::get_if<0>(&held_)); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const { return assert(!ok()), *std::get_if<1>(&held_); }

 private:
  std::variant<T, Error> held_;
};

/// Nothing to give back, or an Error.
using Outcome = std::optional<Error>;

}  // namespace flashsim
