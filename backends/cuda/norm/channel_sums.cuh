// SPDX-License-Identifier: Apache-2.0
// channel_sums.cuh - what reductions of channels accumulate: moments, and sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernel/wide.cuh"
#include "norm/channel_plan.h"

namespace tenon::cuda {

/// The sum of N terms as a tree, N a power of two.
template <class W, int N>
__device__ W sum_of(const W (&x)[N]) {
  if constexpr (N == 1) {
    return x[0];
  } else {
    W halves[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) halves[i] = x[i] + x[i + N / 2];
    return sum_of(halves);
  }
}

/// Count, mean, and sum of the squared distances from the mean.
template <class W>
struct Distances {
  W count, mean, squares;
};

/// Mean and variance of a channel, computed from differences to one of its own elements, which keep precision when values are far from 0.
/// Two passes over a batch in registers; batches are merged by the pairwise formula.
///
/// Source  Chan, Golub, LeVeque: Algorithms for computing the sample variance (1983).
template <class T>
struct Moments {
  using Element = T;
  using W = Wide<T>;
  using Partial = Distances<W>;
  using Base = W;
  static constexpr int operands = 1;
  static constexpr Traversal traversal = Traversal::any;
  static constexpr bool has_weight = false, by_row = false, relu_grad = false;
  /// The fraction of new terms among all terms so far; and the number of old terms times it.
  struct Step {
    W share, between;
  };

  /// The element that differences are taken to.
  static __device__ W origin(T first) {
    const W x = widen(first);
    return std::isfinite(x) ? x : W(0);
  }
  __device__ Step step(W before, int terms) const {
    const W share = static_cast<W>(terms) / (before + static_cast<W>(terms));
    return {share, before * share};
  }
  template <int N>
  __device__ void take(Partial& total, const Step& step, W origin, const W (&a)[N], const W (&)[N], int terms) const {
    W x[N];
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = i < terms ? a[i] - origin : W(0);
    const W mean = sum_of(x) / static_cast<W>(terms);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const W distance = x[i] - mean;
      x[i] = i < terms ? distance * distance : W(0);
    }
    const W shift = mean - total.mean;
    total.mean += shift * step.share;
    total.squares += sum_of(x) + shift * shift * step.between;
  }
  __device__ void close(Partial& total, W terms) const {
    total.count = terms;
  }
  __device__ Partial combine(const Partial& a, const Partial& b) const {
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    const W count = a.count + b.count, share = b.count / count, shift = b.mean - a.mean;
    return {count, a.mean + shift * share, a.squares + b.squares + shift * shift * (a.count * share)};
  }
};

/// Two running sums.
template <class W>
struct TwoSums {
  W sum, product;
};

/// The common part of ops that are sums.
template <class T>
struct AddsUp {
  using Element = T;
  using W = Wide<T>;
  using Partial = TwoSums<W>;
  static constexpr Traversal traversal = Traversal::any;
  static constexpr bool has_weight = false, by_row = false, relu_grad = false;
  struct Step {};
  __device__ Step step(W, int) const { return {}; }
  __device__ void close(Partial&, W) const {}
  __device__ Partial combine(const Partial& a, const Partial& b) const { return {a.sum + b.sum, a.product + b.product}; }
};

/// sum of a and of a b
template <class W, int N>
__device__ void add_products(TwoSums<W>& total, const W (&a)[N], const W (&b)[N], int terms) {
  W x[N];
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = i < terms ? a[i] : W(0);
  total.sum += sum_of(x);
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = i < terms ? a[i] * b[i] : W(0);
  total.product += sum_of(x);
}

}  // namespace tenon::cuda
