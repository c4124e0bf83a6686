// Fragments of matrices in a warp's registers, and their product on the tensor cores (mma.sync m16n8k16,
// sm_80 and later): A [16, 16] · B [16, 8] is added to C [16, 8] in float32.
//
// Lane l has of C the rows l/4 and l/4 + 8, columns 2(l%4) and the next: c[0], c[1] of the upper row, c[2],
// c[3] of the lower. A has the same places, twice: a[0] upper and a[1] lower row of columns 0 … 7, a[2] and
// a[3] of columns 8 … 15. So two neighbouring C, rounded to the storage type, are an A: P = softmax(S) goes
// into the next product without leaving the registers. B has the rows 2(l%4), +1 in b[0] and those + 8 in
// b[1], of column l/4.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace flashsim {

inline constexpr int kFragmentRows = 16;   ///< of A and C
inline constexpr int kFragmentKeys = 8;    ///< columns of B and C
inline constexpr int kFragmentTerms = 16;  ///< columns of A, rows of B

/// C += A B. T is __half or __nv_bfloat16.
template <class T>
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  static_assert(sizeof(T) == 2, "two elements fill a register");
  if constexpr (std::is_same_v<T, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Four matrices of 8 × 8 out of shared memory: lane l gives the address of row l%8 (16 bytes) of matrix l/8,
/// and gets of each matrix the elements (l/4, 2(l%4)) and the next.
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared));
}

/// The same, each matrix turned: lane l gets the elements (2(l%4), l/4) and the one below.
__device__ inline void load_turned_matrices(std::uint32_t (&r)[4], std::uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared));
}

/// Two numbers rounded to nearest, the first in the lower half.
template <class T>
__device__ inline std::uint32_t rounded_pair(float first, float second) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(first, second);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
}

}  // namespace flashsim
