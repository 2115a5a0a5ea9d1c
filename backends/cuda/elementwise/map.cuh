// SPDX-License-Identifier: Apache-2.0
// map.cuh - y[i] = f(x0[i], x1[i], ...) for every elementwise op: one kernel for dense operands, 16 bytes at a time, and one for any
// strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernel/launch.h"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {

/// The traits of elementwise kernels.
inline constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true, .elementwise = true};

namespace detail {

/// Elements per pack: those of the widest type that fill 16 bytes.
template <class... T>
constexpr int pack_width() {
  std::size_t widest = 1;
  ((widest = sizeof(T) > widest ? sizeof(T) : widest), ...);
  return static_cast<int>(16 / widest);
}

template <int V, class T>
__device__ Pack<T, V> load(const T* x, std::int64_t pack, bool is_scalar) {
  if (!is_scalar) return reinterpret_cast<const Pack<T, V>*>(x)[pack];
  Pack<T, V> all;
#pragma unroll
  for (int j = 0; j < V; ++j) all.at[j] = x[0];
  return all;
}

template <int V, class Function, class U, class... T>
__device__ Pack<U, V> apply(const Function& f, const Pack<T, V>&... x) {
  Pack<U, V> y;
#pragma unroll
  for (int j = 0; j < V; ++j) y.at[j] = f(x.at[j]...);
  return y;
}

template <int V, class Function, class U, class... T, std::size_t... K>
__device__ void map_packs(std::index_sequence<K...>, const Function& f, std::uint32_t scalars, std::int64_t count, U* y, const T*... x) {
  const std::int64_t packs = count / V;
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    reinterpret_cast<Pack<U, V>*>(y)[p] = apply<V, Function, U>(f, load<V>(x, p, (scalars >> K & 1u) != 0)...);
  }
  const std::int64_t rest = packs * V + thread_index();
  if (rest < count) y[rest] = f(x[(scalars >> K & 1u) != 0 ? 0 : rest]...);
}

/// Operand k is one element if bit k of `scalars` is set, else dense and aligned for packs.
template <int V, class Function, class U, class... T>
__global__ void map_dense(Function f, std::uint32_t scalars, std::int64_t count, U* y, const T*... x) {
  map_packs<V>(std::index_sequence_for<T...>(), f, scalars, count, y, x...);
}

template <class Function, class U, class... T, std::size_t... K>
__device__ void map_places(std::index_sequence<K...>, const Function& f, const Layout<sizeof...(T)>& layout, U* y, const T*... x) {
  for (std::int64_t i = thread_index(); i < layout.count; i += thread_count()) {
    std::int64_t at[sizeof...(T)];
    place(layout, i, at);
    y[i] = f(x[at[K]]...);
  }
}

template <class Function, class U, class... T>
__global__ void map_strided(Function f, Layout<sizeof...(T)> layout, U* y, const T*... x) {
  map_places(std::index_sequence_for<T...>(), f, layout, y, x...);
}

}  // namespace detail

/// y = f(x...), y dense of U, x the first inputs of the call, of T..., broadcast to y's shape.
/// In place  y may be any x of its shape and type: each thread reads before it writes.
template <class U, class... T, class Function, std::size_t... K>
void map_inputs(std::index_sequence<K...>, const sdk::Call& call, const Function& f) {
  constexpr int V = detail::pack_width<U, T...>();
  const Layout<sizeof...(T)> layout = layout_of_inputs<sizeof...(T)>(call);
  Stream& stream = stream_of(call);
  U* const y = call.output<U>(0);
  std::uint32_t scalars = 0;
  bool packs = reinterpret_cast<std::uintptr_t>(y) % (V * sizeof(U)) == 0;
  const auto look = [&](std::size_t k, const void* x, std::size_t alignment) {
    if (is_scalar(layout, k)) {
      scalars |= 1u << k;
    } else {
      packs = packs && is_dense(layout, k) && reinterpret_cast<std::uintptr_t>(x) % alignment == 0;
    }
  };
  (look(K, call.inputs[K].data, V * sizeof(T)), ...);
  if (packs) {
    launch(stream, grid_stride(stream.device(), (layout.count + V - 1) / V), detail::map_dense<V, Function, U, T...>, f, scalars,
           layout.count, y, call.input<T>(K)...);
  } else {
    launch(stream, grid_stride(stream.device(), layout.count), detail::map_strided<Function, U, T...>, f, layout, y, call.input<T>(K)...);
  }
}

template <class U, class... T, class Function>
void map(const sdk::Call& call, const Function& f) {
  map_inputs<U, T...>(std::index_sequence_for<T...>(), call, f);
}

}  // namespace tenon::cuda
