// SPDX-License-Identifier: Apache-2.0
// pack.cuh - elements that a thread loads or stores at once: up to 16 bytes, from an address that is a multiple of their size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

/// Stores a pack to global memory with instructions of up to 16 bytes. nvcc 13.0 splits the assignment of a pack into stores of its
/// elements in some kernels, such as that of Adam (tests/cuda_machine_code), even if it is told of the alignment.
///
/// Source  CUDA C++ Programming Guide, "Store Functions Using Cache Hints": __stwb is the default, for types of one instruction.
template <int V, class T>
__device__ void store_pack(T* x, const Pack<T, V>& pack) {
  constexpr std::size_t size = sizeof pack;
  const auto store_as = [&](auto word, std::size_t offset) {
    memcpy(&word, reinterpret_cast<const char*>(&pack) + offset, sizeof word);
    __stwb(reinterpret_cast<decltype(word)*>(reinterpret_cast<char*>(x) + offset), word);
  };
  if constexpr (size % 16 == 0) {
#pragma unroll
    for (std::size_t offset = 0; offset < size; offset += 16) store_as(uint4{}, offset);
  } else if constexpr (size == 8) {
    store_as(uint2{}, 0);
  } else if constexpr (size == 4) {
    store_as(0u, 0);
  } else {
    static_assert(size < 4, "a pack has a power of two of bytes");
    *reinterpret_cast<Pack<T, V>*>(x) = pack;
  }
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
