// SPDX-License-Identifier: Apache-2.0
// long_lines.cuh - the normalisation of lines that are too long for registers, and its gradient: reductions of channels and passes over all
// elements (channels.cuh), with a line as a channel.
#pragma once

#include <cmath>

#include "norm/channels.cuh"
#include "norm/line_operands.cuh"

namespace tenon::cuda {

/// x' = (x - centre) inverse + offset
template <class W>
struct ToNormal {
  W centre, inverse, offset;
};

template <class T>
struct LineMoments : Moments<T> {
  using W = Wide<T>;
  static constexpr Traversal traversal = Traversal::lines;
  LineNorm<T> p;
  ToNormal<W>* made;

  __device__ W base(std::int64_t line) const { return this->origin(p.x[line * p.n]); }
  __device__ void finish(std::int64_t line, const Distances<W>& of) const {
    const W origin = base(line), mean = origin + of.mean, inverse = 1 / std::sqrt(of.squares / static_cast<W>(p.n) + p.epsilon);
    if (p.mean != nullptr) p.mean[line] = narrow<T>(mean);
    if (p.inverse != nullptr) p.inverse[line] = narrow<T>(inverse);
    made[line] = {mean, inverse, -((origin - mean) + of.mean) * inverse};
  }
};

/// `sum` of x^2.
template <class T>
struct LineSquares : AddsUp<T> {
  using W = Wide<T>;
  struct Base {};
  static constexpr int operands = 1;
  static constexpr Traversal traversal = Traversal::lines;
  LineNorm<T> p;
  ToNormal<W>* made;

  __device__ Base base(std::int64_t) const { return {}; }
  template <int N>
  __device__ void take(TwoSums<W>& total, const typename AddsUp<T>::Step&, Base, const W (&x)[N], const W (&)[N], int terms) const {
    W squares[N];
#pragma unroll
    for (int i = 0; i < N; ++i) squares[i] = i < terms ? x[i] * x[i] : W(0);
    total.sum += sum_of(squares);
  }
  __device__ void finish(std::int64_t line, const TwoSums<W>& of) const {
    const W inverse = 1 / std::sqrt(of.sum / static_cast<W>(p.n) + p.epsilon);
    if (p.inverse != nullptr) p.inverse[line] = narrow<T>(inverse);
    made[line] = {W(0), inverse, W(0)};
  }
};

/// y may be p.x.
template <class T>
struct NormaliseLongLines {
  using Element = T;
  static constexpr Traversal traversal = Traversal::lines;
  using Params = ToNormal<Wide<T>>;
  template <int V>
  struct Packs {
    Pack<T, V> x, scale, bias;
  };

  LineNorm<T> p;
  T* y;
  const Params* made;

  __device__ Params params(std::int64_t line) const { return made[line]; }
  template <int V>
  __device__ Packs<V> read(std::int64_t at, std::int64_t place) const {
    Packs<V> packs{pack_at<V>(p.x + at), {}, {}};
    if (p.scale != nullptr) packs.scale = pack_at<V>(p.scale + place);
    if (p.bias != nullptr) packs.bias = pack_at<V>(p.bias + place);
    return packs;
  }
  template <int V>
  __device__ Wide<T> value(const Params& by, const Packs<V>& packs, int v, std::int64_t) const {
    Wide<T> x = (widen(packs.x.at[v]) - by.centre) * by.inverse + by.offset;
    if (p.scale != nullptr) x *= widen(packs.scale.at[v]);
    if (p.bias != nullptr) x += widen(packs.bias.at[v]);
    return x;
  }
};

/// dx = inverse (g - shift - x' slope)
template <class W>
struct LineCoefficients {
  W mean, inverse, shift, slope;
};

/// sum(g) and sum(g x'), g = dy scale.
template <class T, bool centred>
struct LongLineSums : AddsUp<T> {
  using W = Wide<T>;
  struct Base {
    W mean, inverse;
  };
  static constexpr int operands = 2;
  static constexpr Traversal traversal = Traversal::lines;
  static constexpr bool has_weight = true;
  LineNormGrad<T> p;
  LineCoefficients<W>* made;

  __device__ Base base(std::int64_t line) const { return {centred ? widen(p.mean[line]) : W(0), widen(p.inverse[line])}; }
  template <int V>
  __device__ void apply_weight(W (&dy)[V], std::int64_t place) const {
    if (p.scale == nullptr) return;
    const Pack<T, V> scale = pack_at<V>(p.scale + place);
#pragma unroll
    for (int v = 0; v < V; ++v) dy[v] *= widen(scale.at[v]);
  }
  template <int N>
  __device__ void take(TwoSums<W>& total, const typename AddsUp<T>::Step&, const Base& by, const W (&g)[N], const W (&x)[N],
                       int terms) const {
    W normal[N];
#pragma unroll
    for (int i = 0; i < N; ++i) normal[i] = (x[i] - by.mean) * by.inverse;
    add_products(total, g, normal, terms);
  }
  __device__ void finish(std::int64_t line, const TwoSums<W>& of) const {
    const Base by = base(line);
    const auto terms = static_cast<W>(p.n);
    made[line] = {by.mean, by.inverse, centred ? of.sum / terms : W(0), of.product / terms};
  }
};

template <class T>
struct LongLineGradients {
  using Element = T;
  static constexpr Traversal traversal = Traversal::lines;
  using Params = LineCoefficients<Wide<T>>;
  template <int V>
  struct Packs {
    Pack<T, V> dy, x, scale, residual;
  };

  LineNormGrad<T> p;
  T* y;
  const Params* made;

  __device__ Params params(std::int64_t line) const { return made[line]; }
  template <int V>
  __device__ Packs<V> read(std::int64_t at, std::int64_t place) const {
    Packs<V> packs{pack_at<V>(p.dy + at), pack_at<V>(p.x + at), {}, p.epilogue.template read<V>(at)};
    if (p.scale != nullptr) packs.scale = pack_at<V>(p.scale + place);
    return packs;
  }
  template <int V>
  __device__ Wide<T> value(const Params& by, const Packs<V>& packs, int v, std::int64_t at) const {
    Wide<T> g = widen(packs.dy.at[v]);
    if (p.scale != nullptr) g *= widen(packs.scale.at[v]);
    const Wide<T> dx = by.inverse * (g - by.shift - (widen(packs.x.at[v]) - by.mean) * by.inverse * by.slope);
    return p.epilogue.sum(dx, packs.residual.at[v], at + v);
  }
};

}  // namespace tenon::cuda
