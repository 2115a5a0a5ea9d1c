// SPDX-License-Identifier: Apache-2.0
// line_norm.cuh - normalisation of lines, by mean and variance (centred) or only by the mean square, and its gradient.
//
// A line of up to 8192 elements is read once and held in registers; in the gradient up to 4096, which also accumulates the sums over the
// lines. Longer lines are treated as channels (channels.cuh): a reduction of each line, and a pass over all elements.
#pragma once

#include <cmath>

#include "elementwise/epilogue.cuh"
#include "kernel/operands.h"
#include "kernel/pack.cuh"
#include "norm/channels.cuh"
#include "reduce/rows.cuh"

namespace tenon::cuda {

/// The operands of a call, scale, bias and statistics NULL where they are absent.
template <class T>
struct LineNorm {
  std::int64_t n;  ///< elements of a line
  Wide<T> epsilon;
  const T *x, *scale, *bias;
  T *y, *mean, *inverse;
};
template <class T>
struct LineNormGrad {
  std::int64_t n;
  const T *dy, *x, *scale, *mean, *inverse;  ///< mean: NULL if not centred
  T *dx, *dscale, *dbias;
  ElementEpilogue<T> epilogue = {};  ///< of dx, without an activation
};

// ---------------------------------------------------------------- lines in registers

/// dscale and dbias, reduced over lines or over the partial sums of blocks.
template <class T, bool centred>
struct OverLines : AddsUp<T> {
  using W = Wide<T>;
  struct Base {};
  /// x' = (x - mean) inverse
  struct Row {
    W mean, inverse;
  };
  static constexpr int operands = 2;
  static constexpr Traversal traversal = Traversal::columns;
  static constexpr bool by_row = true;
  LineNormGrad<T> p;

  __device__ Base base(std::int64_t) const { return {}; }
  __device__ Row row(std::int64_t line) const { return {centred ? widen(p.mean[line]) : W(0), widen(p.inverse[line])}; }
  __device__ W of_row(W x, const Row& by) const { return (x - by.mean) * by.inverse; }
  template <int N>
  __device__ void take(TwoSums<W>& total, const typename AddsUp<T>::Step&, Base, const W (&dy)[N], const W (&normal)[N], int terms) const {
    add_products(total, dy, normal, terms);
  }
  __device__ void finish(std::int64_t i, const TwoSums<W>& of) const {
    if (p.dscale != nullptr) p.dscale[i] = narrow<T>(of.product);
    if (p.dbias != nullptr) p.dbias[i] = narrow<T>(of.sum);
  }
};

/// y may be x: a line is read before it is written.
template <class T, bool centred, int E>
__global__ void __launch_bounds__(reduction_threads) lines_in_registers(LineNorm<T> p, std::int64_t lines, int lanes, bool packs) {
  using W = Wide<T>;
  using Part = RowPart<T, E>;
  const int at_once = reduction_threads / lanes;
  const Part part{p.n, lanes, static_cast<int>(threadIdx.x) % lanes, packs};
  const std::int64_t first = std::int64_t{blockIdx.x} * at_once;
  const std::int64_t line = first + static_cast<int>(threadIdx.x) / lanes;
  const bool exists = line < lines;  // else the thread takes part with an existing line
  const std::int64_t start = (exists ? line : first) * p.n;
  const auto terms = static_cast<W>(p.n);
  W x[E], squares[E], mean = 0, origin = 0;
  part.read(p.x + start, W(0), x);
  if constexpr (centred) {
    origin = Moments<T>::origin(p.x[start]);
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] = part.index(e) < p.n ? x[e] - origin : W(0);
    mean = combine_lanes(Sum<W>{}, sum_of(x), lanes) / terms;
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] -= mean;
  }
#pragma unroll
  for (int e = 0; e < E; ++e) squares[e] = part.index(e) < p.n ? x[e] * x[e] : W(0);
  const W inverse = 1 / std::sqrt(combine_lanes(Sum<W>{}, sum_of(squares), lanes) / terms + p.epsilon);
  if (!exists) return;
  if (part.lane == 0) {
    if (centred && p.mean != nullptr) p.mean[line] = narrow<T>(origin + mean);
    if (p.inverse != nullptr) p.inverse[line] = narrow<T>(inverse);
  }
#pragma unroll
  for (int e = 0; e < E; e += Part::width) {
    W y[Part::width], by[Part::width] = {};
#pragma unroll
    for (int v = 0; v < Part::width; ++v) y[v] = x[e + v] * inverse;
    if (p.scale != nullptr) {
      part.read_at(p.scale, e, by);
#pragma unroll
      for (int v = 0; v < Part::width; ++v) y[v] *= by[v];
    }
    if (p.bias != nullptr) {
      part.read_at(p.bias, e, by);
#pragma unroll
      for (int v = 0; v < Part::width; ++v) y[v] += by[v];
    }
    part.write_at(p.y + start, e, y);
  }
}

/// Also sum(dy) and sum(dy x') over the lines of each block, as (block, n), unless `partials` is NULL; the last block may combine them.
template <class T, bool centred, int E>
__global__ void __launch_bounds__(reduction_threads, (E > 4 ? 2 : 4) / (sizeof(T) < 8 ? 1 : 2))
    gradients_in_registers(LineNormGrad<T> p, std::int64_t lines, int lanes, bool packs, TwoSums<Wide<T>>* partials, LastBlock last) {
  using W = Wide<T>;
  using Part = RowPart<T, E>;
  const AddsUp<T> adds{};
  const int at_once = reduction_threads / lanes;
  const Part part{p.n, lanes, static_cast<int>(threadIdx.x) % lanes, packs};
  TwoSums<W> over_lines[E] = {};
  for (std::int64_t first = std::int64_t{blockIdx.x} * at_once; first < lines; first += std::int64_t{gridDim.x} * at_once) {
    const std::int64_t line = first + static_cast<int>(threadIdx.x) / lanes;
    const bool exists = line < lines;  // else the thread takes part with an existing line
    const std::int64_t from = exists ? line : first, start = from * p.n;
    const W mean = centred ? widen(p.mean[from]) : W(0), inverse = widen(p.inverse[from]);
    W g[E], normal[E];
    part.read(p.dy + start, W(0), g);
    part.read(p.x + start, W(0), normal);
#pragma unroll
    for (int e = 0; e < E; ++e) {
      normal[e] = part.index(e) < p.n ? (normal[e] - mean) * inverse : W(0);
      if (exists) {
        over_lines[e].sum += g[e];
        over_lines[e].product += g[e] * normal[e];
      }
    }
    if (p.scale != nullptr) {
#pragma unroll
      for (int e = 0; e < E; e += Part::width) {
        W scale[Part::width] = {};
        part.read_at(p.scale, e, scale);
#pragma unroll
        for (int v = 0; v < Part::width; ++v) g[e + v] *= scale[v];
      }
    }
    TwoSums<W> of{};
    add_products(of, g, normal, E);
    of = combine_lanes(adds, of, lanes);
    const auto terms = static_cast<W>(p.n);
    const W shift = centred ? of.sum / terms : W(0), slope = of.product / terms;
    if (!exists) continue;
#pragma unroll
    for (int e = 0; e < E; e += Part::width) {
      W dx[Part::width], addend[Part::width] = {};
      if (p.epilogue.residual != nullptr) part.read_at(p.epilogue.residual + start, e, addend);
#pragma unroll
      for (int v = 0; v < Part::width; ++v) {
        dx[v] = inverse * (g[e + v] - shift - normal[e + v] * slope);
        dx[v] = p.epilogue.sum(dx[v], narrow<T>(addend[v]), start + part.index(e + v));
      }
      part.write_at(p.dx + start, e, dx);
    }
  }
  if (partials == nullptr) return;
  constexpr int some = 4;  // columns at once: shared memory is limited
#pragma unroll
  for (int e = 0; e < E; e += some) {
    TwoSums<W> sums[some];
#pragma unroll
    for (int v = 0; v < some; ++v) sums[v] = over_lines[e + v];
    combine_groups(adds, sums, lanes, at_once);
    if (static_cast<int>(threadIdx.x) < lanes) {
#pragma unroll
      for (int v = 0; v < some; ++v) {
        if (part.index(e + v) < p.n) partials[blockIdx.x * p.n + part.index(e + v)] = sums[v];
      }
    }
  }
  if (last.counters == nullptr || !is_last_block(last.counters, static_cast<int>(gridDim.x))) return;
  combine_channels(OverLines<T, centred>{{}, p}, partials, p.n, 0, p.n, gridDim.x, last.threads);
}

// ---------------------------------------------------------------- longer lines

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

// ---------------------------------------------------------------- host side

/// Blocks of a gradient, each of which processes several lines: as many as a large GPU holds at once, on every GPU, since sums depend on
/// their number.
inline std::int64_t gradient_blocks(const RowPlan& plan, std::int64_t lines) {
  const std::int64_t at_once = reduction_threads / plan.lanes;
  return std::min<std::int64_t>((lines + 2 * at_once - 1) / (2 * at_once), plan.elements <= 4 ? 1056 : 264);
}
inline bool in_registers(const RowPlan& plan, int max_elements) {
  return plan.elements > 0 && plan.elements <= max_elements;
}
inline constexpr int max_elements = 32, max_elements_of_gradient = 16;

/// channel_width of operands along lines: lines must divide into packs, since scale and bias are read in packs too.
template <class T, class... Pointer>
int width_along(std::int64_t n, Pointer... x) {
  const int width = channel_width<T>(x...);
  return n % width == 0 ? width : 1;
}
/// True if a thread that holds `elements` elements of a line can read packs.
template <class T, class... Pointer>
bool packs_along(std::int64_t n, int elements, Pointer... x) {
  const int width = std::min(pack_width<T>, elements);
  return is_aligned(16, x...) && n % width == 0;
}

template <class T, bool centred>
void normalise_lines(const sdk::Call& call, const LineNorm<T>& p, std::int64_t lines) {
  using W = Wide<T>;
  Stream& stream = stream_of(call);
  const RowPlan plan = plan_rows(p.n);
  if (in_registers(plan, max_elements)) {
    const int elements = plan.elements <= 4 ? 4 : plan.elements <= 16 ? 16 : 32;
    const auto kernel = elements == 4    ? lines_in_registers<T, centred, 4>
                        : elements == 16 ? lines_in_registers<T, centred, 16>
                                         : lines_in_registers<T, centred, 32>;
    const std::int64_t at_once = reduction_threads / plan.lanes;
    launch(stream, {(lines + at_once - 1) / at_once, reduction_threads}, kernel, p, lines, plan.lanes,
           packs_along<T>(p.n, elements, p.x, p.y, p.scale, p.bias));
    return;
  }
  using Op = std::conditional_t<centred, LineMoments<T>, LineSquares<T>>;
  const Channels at{1, lines, p.n};
  auto* const made = static_cast<ToNormal<W>*>(call.scratch);
  auto* const partials = reinterpret_cast<typename Op::Partial*>(static_cast<std::byte*>(call.scratch) + buffer_bytes<ToNormal<W>>(lines));
  reduce_and_pass(stream, Op{{}, p, made}, {p.x, nullptr}, at, channel_width<T>(p.x), partials, NormaliseLongLines<T>{p, p.y, made},
                  width_along<T>(p.n, p.x, p.y, p.scale, p.bias));
}

template <class T>
std::size_t scratch_of_lines(std::int64_t lines, std::int64_t n) {
  using W = Wide<T>;
  if (in_registers(plan_rows(n), max_elements)) return 0;
  return buffer_bytes<ToNormal<W>>(lines) + buffer_bytes<Distances<W>>(partials_of({1, lines, n}, channel_pack<T>));
}

template <class T, bool centred>
void line_gradients(const sdk::Call& call, const LineNormGrad<T>& p, std::int64_t lines) {
  using W = Wide<T>;
  using Columns = OverLines<T, centred>;
  Stream& stream = stream_of(call);
  const RowPlan plan = plan_rows(p.n);
  const Columns columns{{}, p};
  const bool needs_columns = p.dscale != nullptr || p.dbias != nullptr;
  if (in_registers(plan, max_elements_of_gradient)) {
    const std::int64_t blocks = gradient_blocks(plan, lines);
    const int elements = plan.elements <= 4 ? 4 : 16;
    auto* const partials = needs_columns ? static_cast<TwoSums<W>*>(call.scratch) : nullptr;
    LastBlock last;
    if (needs_columns && blocks > 0) last = last_block(stream, 1, p.n, blocks, reduction_threads);
    launch(stream, {blocks, reduction_threads},
           elements == 4 ? gradients_in_registers<T, centred, 4> : gradients_in_registers<T, centred, 16>, p, lines, plan.lanes,
           packs_along<T>(p.n, elements, p.dy, p.x, p.dx, p.scale, p.epilogue.residual), partials, last);
    if (needs_columns && last.counters == nullptr) combine_channel_splits(stream, columns, partials, p.n, blocks);
    return;
  }
  using Op = LongLineSums<T, centred>;
  const Channels at{1, lines, p.n}, down{lines, p.n, 1};
  auto* const made = static_cast<LineCoefficients<W>*>(call.scratch);
  auto* const partials = reinterpret_cast<TwoSums<W>*>(static_cast<std::byte*>(call.scratch) + buffer_bytes<LineCoefficients<W>>(lines));
  reduce_and_pass(stream, Op{{}, p, made}, {p.dy, p.x}, at, channel_width<T>(p.dy, p.x, p.scale), partials,
                  LongLineGradients<T>{p, p.dx, made}, width_along<T>(p.n, p.dy, p.x, p.dx, p.scale, p.epilogue.residual));
  if (needs_columns) reduce_channels(stream, columns, {p.dy, p.x}, down, channel_width<T>(p.dy, p.x), partials);
}

template <class T>
std::size_t scratch_of_gradients(std::int64_t lines, std::int64_t n) {
  using W = Wide<T>;
  const RowPlan plan = plan_rows(n);
  if (in_registers(plan, max_elements_of_gradient)) return buffer_bytes<TwoSums<W>>(gradient_blocks(plan, lines) * n);
  const std::int64_t along = partials_of({1, lines, n}, channel_pack<T>), down = partials_of({lines, n, 1}, channel_pack<T>);
  return buffer_bytes<LineCoefficients<W>>(lines) + buffer_bytes<TwoSums<W>>(std::max(along, down));
}

/// The lines of operand x of a call, as channels.
inline Channels lines_of(const sdk::Call& call, std::uint32_t x) {
  return lines_from(call.inputs[x], call.attr<tenon_attributes_layer_norm>().axis);
}
template <class T>
Wide<T> epsilon_of(const sdk::Call& call) {
  return static_cast<Wide<T>>(call.attr<tenon_attributes_layer_norm>().epsilon);
}
inline std::size_t line_norm_scratch(const sdk::Call& call) {
  const Channels lines = lines_of(call, 0);
  return dispatch_floating(call.inputs[0].dtype, [&]<class T>() { return scratch_of_lines<T>(lines.count, lines.inner); });
}
inline std::size_t line_norm_grad_scratch(const sdk::Call& call) {
  const Channels lines = lines_of(call, 1);
  return dispatch_floating(call.inputs[1].dtype, [&]<class T>() { return scratch_of_gradients<T>(lines.count, lines.inner); });
}
inline constexpr sdk::Traits line_norm_traits{.in_place = true, .scratch = line_norm_scratch};
inline constexpr sdk::Traits line_norm_grad_traits{.epilogue = true, .residual = true, .activations = 0, .scratch = line_norm_grad_scratch};

}  // namespace tenon::cuda
