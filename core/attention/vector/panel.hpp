// How tiles lie on the chip for vector code: the lanes are queries.
//
// A query tile is cut into panels of kPanelWidth queries. In a panel the queries of one key (S, P) or of one
// column (Q, O) lie side by side:
//
//   Q, O, dO, dQ: [d][W]      S, P, dP, dS: [keys][W]      m, l, r, L: [W]
//
// K and V lie as they do in HBM, [keys][d]. So every query has a lane of its own from its first product to
// its last division: maxima and sums need no step across lanes, a row's additions run key by key in order,
// and its bits depend neither on the width of the machine's vectors nor on the rows beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace flashsim {

/// W, the queries of a panel: 128 bytes of them, two vectors of the widest kind.
template <class T>
inline constexpr std::int64_t kPanelWidth = 128 / static_cast<std::int64_t>(sizeof(T));

/// The panels that hold `rows` queries.
template <class T>
constexpr std::int64_t panels_of(std::int64_t rows) {
  return (rows + kPanelWidth<T> - 1) / kPanelWidth<T>;
}

/// Memory that vectors can be loaded from as they lie.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{128};
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>& other) {
    (void)other;
  }
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* memory, std::size_t n) {
    (void)n;
    ::operator delete(memory, kAlignment);
  }
  friend bool operator==(AlignedAllocator, AlignedAllocator) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace flashsim
