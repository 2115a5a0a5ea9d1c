// SPDX-License-Identifier: Apache-2.0
// depthwise_vectors.h - vectors of channels and the activation of their sums, for the kernels of depthwise convolutions. A source file
// includes it after foreach_target.h, as it does simd.h.
#if defined(TENON_OPENBLAS_DEPTHWISE_VECTORS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_DEPTHWISE_VECTORS_H
#undef TENON_OPENBLAS_DEPTHWISE_VECTORS_H
#else
#define TENON_OPENBLAS_DEPTHWISE_VECTORS_H
#endif

#include <limits>

#include "simd/activations.h"
#include "simd/bf16.h"
#include "simd/unroll.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// Access to one vector of channels, or to its first n lanes.
template <class T, bool part>
struct Channels {
  using D = Wide<Computed<T>>;
  std::int64_t n = 0;
  HWY_INLINE hn::Vec<D> load(const T* p) const {
    if constexpr (part) return load_stored_first(D(), p, n);
    return load_stored(D(), p);
  }
  HWY_INLINE void store(hn::Vec<D> v, T* p) const {
    if constexpr (part) {
      store_rounded_first(v, D(), p, n);
    } else {
      store_rounded(v, D(), p);
    }
  }
};

/// The activations that are not a comparison: n elements, whole vectors.
template <class C>
HWY_NOINLINE void activate_all(const sdk::Activation& activation, C* sums, std::int64_t n) {
  with_activation<C>(activation, [&](const auto& activate) { map(activate, sums, sums, n); });
}

/// What is applied to sums: comparisons in registers, other activations by a function call, so that a kernel is compiled once for all of
/// them.
template <class C>
struct SumActivation {
  explicit SumActivation(const sdk::Activation& activation) : other(&activation) {
    if (activation == sdk::Activation::relu) {
      bounds.low = 0;
    } else if (activation == sdk::Activation::clip && sizeof(C) == sizeof(float)) {
      bounds = {C(activation.low), C(activation.high)};
    } else {
      compares = activation == sdk::Activation::none;
    }
  }

  /// sums[0] to sums[count - 1], each a vector.
  template <int count>
  HWY_INLINE void operator()(hn::Vec<Wide<C>> (&sums)[count]) const {
    const Wide<C> d;
    if (HWY_LIKELY(compares)) {
      TENON_UNROLL
      for (int i = 0; i < count; ++i) sums[i] = bounds(d, sums[i]);
      return;
    }
    HWY_ALIGN C values[count * HWY_MAX_BYTES / sizeof(C)];
    TENON_UNROLL
    for (int i = 0; i < count; ++i) hn::Store(sums[i], d, values + i * lanes(d));
    activate_all(*other, values, count * lanes(d));
    TENON_UNROLL
    for (int i = 0; i < count; ++i) sums[i] = hn::Load(d, values + i * lanes(d));
  }

  bool compares = true;  ///< the activation is `bounds`, or none
  Clip<C> bounds{-std::numeric_limits<C>::infinity(), std::numeric_limits<C>::infinity()};
  const sdk::Activation* other;
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
