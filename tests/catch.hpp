// Catch2, version 3 or 2, and how it prints our counts and amounts.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

#include "core/base/units.hpp"

namespace Catch {

template <>
struct StringMaker<flashsim::Count> {
  static std::string convert(flashsim::Count count) {
    return count.overflowed() ? "overflowed" : std::to_string(count.value());
  }
};

template <class Kind>
struct StringMaker<flashsim::Amount<Kind>> {
  static std::string convert(flashsim::Amount<Kind> amount) {
    return StringMaker<flashsim::Count>::convert(amount.count);
  }
};

}  // namespace Catch
