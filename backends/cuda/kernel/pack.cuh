// SPDX-License-Identifier: Apache-2.0
// pack.cuh - elements that a thread loads or stores at once: up to 16 bytes, from an address that is a multiple of their size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tenon::cuda {

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

/// The elements that fill a pack of 16 bytes; of several types, those of the widest.
template <class... T>
inline constexpr int pack_width = static_cast<int>(16 / std::max({sizeof(T)...}));

/// The pack that begins at x.
template <int V, class T>
__device__ const Pack<T, V>& pack_at(const T* x) {
  return *reinterpret_cast<const Pack<T, V>*>(x);
}
/// To be assigned in shared memory; store_pack is for global memory.
template <int V, class T>
__device__ Pack<T, V>& pack_at(T* x) {
  return *reinterpret_cast<Pack<T, V>*>(x);
}

/// Stores a pack to global memory by one instruction. nvcc stores a pack that is assigned by elements where it does not see that the address
/// is aligned, for example in a loop (tests/cuda_machine_code).
///
/// Source  CUDA C++ Programming Guide, "Store Functions Using Cache Hints": __stwb is the default, of a type of one instruction.
template <int V, class T>
__device__ void store_pack(T* x, const Pack<T, V>& pack) {
  const auto store_as = [&](auto word) {
    static_assert(sizeof word == sizeof pack);
    memcpy(&word, &pack, sizeof word);
    __stwb(reinterpret_cast<decltype(word)*>(x), word);
  };
  if constexpr (sizeof pack == 16)
    store_as(uint4{});
  else if constexpr (sizeof pack == 8)
    store_as(uint2{});
  else if constexpr (sizeof pack == 4)
    store_as(0u);
  else
    *reinterpret_cast<Pack<T, V>*>(x) = pack;
}

/// True if all addresses are multiples of `bytes`; NULL is.
template <class... Pointer>
bool is_aligned(std::size_t bytes, Pointer... x) {
  return ((reinterpret_cast<std::uintptr_t>(x) % bytes == 0) && ...);
}
/// pack_width if all addresses are aligned for it, else 1.
template <class T, class... Pointer>
int aligned_width(Pointer... x) {
  return is_aligned(16, x...) ? pack_width<T> : 1;
}
/// True if lines of n elements at these addresses divide into aligned packs.
template <class T, class... Pointer>
bool fits_packs(std::int64_t n, Pointer... x) {
  return n % pack_width<T> == 0 && is_aligned(16, x...);
}

}  // namespace tenon::cuda
