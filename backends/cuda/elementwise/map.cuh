// SPDX-License-Identifier: Apache-2.0
// map.cuh - y[i] = f(x0[i], x1[i], ...) for every elementwise op: one kernel for dense operands, 16 bytes at a time, and one for any
// strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {

/// The traits of elementwise kernels.
inline constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true, .elementwise = true};

namespace detail {

template <int V, class T>
__device__ Pack<T, V> load(const T* x, std::int64_t pack, bool is_scalar) {
  if (!is_scalar) return pack_at<V>(x + pack * V);
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
    store_pack<V>(y + p * V, apply<V, Function, U>(f, load<V>(x, p, (scalars >> K & 1u) != 0)...));
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

/// Packs, if every operand is one element or dense and aligned; else returns false.
template <class U, class... T, class Function, std::size_t... K>
bool map_aligned(std::index_sequence<K...>, const sdk::Call& call, const Layout<sizeof...(T)>& layout, const Function& f) {
  constexpr int V = pack_width<U, T...>;
  U* const y = call.output<U>(0);
  const std::uint32_t scalars = ((is_scalar(layout, K) ? 1u << K : 0u) | ...);
  if (!is_aligned(V * sizeof(U), y)) return false;
  if (!((is_scalar(layout, K) || (is_dense(layout, K) && is_aligned(V * sizeof(T), call.inputs[K].data))) && ...)) return false;
  launch_over(call, (layout.count + V - 1) / V, map_dense<V, Function, U, T...>, f, scalars, layout.count, y, call.input<T>(K)...);
  return true;
}

template <class U, class... T, class Function, std::size_t... K>
void map_inputs(std::index_sequence<K...> inputs, const sdk::Call& call, const Function& f) {
  const Layout<sizeof...(T)> layout = layout_of_inputs<sizeof...(T)>(call);
  if (map_aligned<U, T...>(inputs, call, layout, f)) return;
  launch_over(call, layout.count, map_strided<Function, U, T...>, f, layout, call.output<U>(0), call.input<T>(K)...);
}

}  // namespace detail

/// y = f(x...), y dense of U, x the first inputs of the call, of T..., broadcast to y's shape.
/// In place  y may be any x of its shape and type: each thread reads before it writes.
template <class U, class... T, class Function>
void map(const sdk::Call& call, const Function& f) {
  detail::map_inputs<U, T...>(std::index_sequence_for<T...>(), call, f);
}
/// The same if packs can be read and written; else does nothing and returns false.
template <class U, class... T, class Function>
bool map_aligned(const sdk::Call& call, const Function& f) {
  return detail::map_aligned<U, T...>(std::index_sequence_for<T...>(), call, layout_of_inputs<sizeof...(T)>(call), f);
}

/// y = f(x) and y = f(a, b), operands of one type.
template <class T, class Function>
void map_unary(const sdk::Call& call, const Function& f) {
  map<std::invoke_result_t<Function, T>, T>(call, f);
}
template <class T, class Function>
void map_binary(const sdk::Call& call, const Function& f) {
  map<std::invoke_result_t<Function, T, T>, T, T>(call, f);
}

}  // namespace tenon::cuda

/// Registers y = function(x), or function(a, b), for the listed types T. The function may depend on T and `call`.
#define TENON_UNARY_KERNEL(stem, function, ...) TENON_MAP_KERNEL(stem, map_unary, function, __VA_ARGS__)
#define TENON_BINARY_KERNEL(stem, function, ...) TENON_MAP_KERNEL(stem, map_binary, function, __VA_ARGS__)
#define TENON_MAP_KERNEL(stem, map, function, ...) \
  namespace {                                      \
  template <class T>                               \
  void stem(const sdk::Call& call) {               \
    map<T>(call, function);                        \
  }                                                \
  }                                                \
  TENON_KERNEL_WITH(stem, elementwise_traits, __VA_ARGS__)
