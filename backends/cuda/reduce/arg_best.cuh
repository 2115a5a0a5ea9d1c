// SPDX-License-Identifier: Apache-2.0
// arg_best.cuh - the reduction of a line to the index of its largest or smallest element.
#pragma once

#include <cstdint>

namespace tenon::cuda {

/// A term and its index; -1: none yet.
template <class T>
struct Candidate {
  T value;
  std::int64_t index;
};

/// The index of the best term, the first of equals. NaN beats everything, so the first NaN wins.
template <class T, class Beats>
struct ArgBest {
  using Partial = Candidate<T>;
  using Result = std::int64_t;

  __device__ Partial nothing() const { return {T(0), -1}; }

  template <int N>
  __device__ void add(Partial& best, const T (&x)[N], const std::int64_t (&index)[N]) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const bool over = best.value != best.value;
      if (best.index < 0 || (!over && (Beats{}(x[i], best.value) || x[i] != x[i]))) best = {x[i], index[i]};
    }
  }
  __device__ Partial combine(Partial a, Partial b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan ? a : b;
    if (!a_is_nan && a.value != b.value) return Beats{}(a.value, b.value) ? a : b;
    return a.index < b.index ? a : b;
  }
  __device__ Result finish(Partial a, std::int64_t) const {
    return a.index;
  }
};

}  // namespace tenon::cuda
