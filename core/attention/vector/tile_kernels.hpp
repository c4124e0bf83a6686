// The arithmetic of one tile as vector code, compiled for several instruction sets of which the best that the
// machine has is taken at run time. Layouts: panel.hpp.
//
// Conventions: m = −∞ means that no score above −∞ has been seen, and then 0 is subtracted, since (−∞) − (−∞)
// is NaN. A key with a score of −∞, masked or not, gets the weight −0, which no exponential gives: it is zero
// to every sum, and kernels that meet NaN or infinities behind it can tell it from a weight that became 0.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/number_types.hpp"

namespace flashsim {

/// C [rows][columns] and A · B with A [rows][depth], B [depth][columns]. The elements of A lie `a_row` and
/// `a_step` apart, one of which is 1; rows of B and C are whole vectors. Every element of C is one chain of
/// fused multiply-adds over the depth, in order.
template <class T>
struct Product {
  T* c = nullptr;
  std::int64_t c_stride = 0;
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_step = 0;
  const T* b = nullptr;
  std::int64_t b_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  enum class Mode {
    assign,      ///< C = factor · (A B)
    add,         ///< C ← C + A B, the chain starting from C
    add_scaled,  ///< C ← C + factor · (A B)
  } mode = Mode::add;
  T factor = 1;
};

/// What a careful product minds besides: which operand holds weights, so that a term without weight (−0) is
/// left out whatever stands across from it, and the type that the chain is rounded to at every addition.
enum class WeightsIn { neither, a, b };

template <class T>
struct TileKernels {
  const char* target;  ///< the instruction set

  void (*product)(const Product<T>&);
  /// The same for Mode::add and add_scaled, minding more; slow.
  void (*careful_product)(const Product<T>&, WeightsIn, NumberType rounded_to);

  /// s ← factor · s over n elements, n a whole number of panels' widths.
  void (*scale)(T* s, std::int64_t n, T factor);
  /// s[c][q] ← stand_in where c ≥ visible[q].
  void (*mask)(T* s, std::int64_t keys, const T* visible, T stand_in);
  /// m[q] ← max(m[q], s[c][q] over c). NaN is passed over; it comes back as exp(NaN).
  void (*maximum)(const T* s, std::int64_t keys, T* m);
  /// s[c][q] ← p = exp(s[c][q] − subtracted[q]), and sum[q] = Σ_c p in order. A score of −∞ has no weight,
  /// whatever is subtracted. P is then rounded to `stored`, the sum is not.
  void (*exponentials)(T* s, std::int64_t keys, const T* subtracted, T* sum, NumberType stored);
  /// out[q] = exp(x[q]) over n elements, n a whole number of panels' widths.
  void (*exponential)(const T* x, std::int64_t n, T* out);
  /// sum[q] ← sum[q] + p[c][q] for every c in order, rounded to `stored` each time.
  void (*rounded_sum)(const T* p, std::int64_t keys, T* sum, NumberType stored);
  /// o[x][q] ← o[x][q] · factor[q]
  void (*multiply)(T* o, std::int64_t rows, const T* factor);
  /// o[x][q] ← o[x][q] + part[x][q] · factor[q], rounded once where the instruction set can.
  void (*add_multiple)(const T* part, std::int64_t rows, const T* factor, T* o);
  /// o[x][q] ← o[x][q] / divisor[q]; what has no weight has none after it.
  void (*divide)(T* o, std::int64_t rows, const T* divisor);
  /// ds[c][q] ← p[c][q] · (ds[c][q] − delta[q]), no weight where p has none; rounded to `stored`.
  void (*score_gradient)(const T* p, T* ds, std::int64_t keys, const T* delta, NumberType stored);
  /// sum[q] = Σ_x a[x][q] · b[x][q] in order; a term whose a has no weight is left out.
  void (*dot)(const T* a, const T* b, std::int64_t rows, T* sum);

  /// to[i] = from[i] as `stored` holds it.
  void (*round)(const T* from, std::int64_t n, T* to, NumberType stored);
  /// to[i] = from[i]; whether no NaN and no infinity was among them.
  bool (*copy)(const T* from, std::int64_t n, T* to);
  /// panel[x][q] = rows[q][x] for q < count; the other lanes become 0.
  void (*pack)(const T* rows, std::int64_t stride, std::int64_t count, std::int64_t columns, T* panel);
  /// rows[q][x] = panel[x][q]
  void (*unpack)(const T* panel, std::int64_t count, std::int64_t columns, T* rows, std::int64_t stride);
};

/// The kernels for this machine.
template <class T>
const TileKernels<T>& tile_kernels();

/// The kernels for every instruction set that this machine has, the best first; for tests, on one thread.
template <class T>
std::vector<const TileKernels<T>*> tile_kernels_of_every_target();

}  // namespace flashsim
