// SPDX-License-Identifier: Apache-2.0
// ops/top_k.cpp - the k largest or smallest elements along an axis, by a heap of the best so far, which most elements never enter.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "workers.h"

namespace tenon::openblas {
namespace {

// Elements of a line that are compared together: their best with the worst of the heap.
constexpr std::int64_t group = 64;
// The smallest number of elements of a task: about 10 us.
constexpr std::int64_t smallest_task = 16 * 1024;

/// A number as a signed integer with the same order; NaN is the largest, -0 equals 0.
template <class T>
using Key = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
template <class T>
Key<T> key_of(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x;
  } else {
    using K = Key<T>;
    const T value = x + T(0);
    K bits;
    std::memcpy(&bits, &value, sizeof bits);
    // the bits of negative numbers order by magnitude, so all but the sign are inverted
    const K key = bits ^ ((bits >> (8 * sizeof(K) - 1)) & std::numeric_limits<K>::max());
    return value != value ? std::numeric_limits<K>::max() : key;
  }
}
/// The key, negated for the smallest elements: ~ reverses the order without overflow.
template <class T>
Key<T> key_of(T x, bool largest) {
  const Key<T> key = key_of(x);
  return largest ? key : static_cast<Key<T>>(~key);
}

template <class K>
struct Entry {
  K key;
  std::int64_t index;
};
template <class K>
bool better(const Entry<K>& a, const Entry<K>& b) {
  return a.key > b.key || (a.key == b.key && a.index < b.index);
}

/// Writes the k best of n keys to out[0..k), in order. `out` has n entries if k > n / 4, else k.
template <class K>
void select(const K* keys, std::int64_t n, std::int64_t k, Entry<K>* out) {
  if (k > n / 4) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = {keys[i], i};
    if (k < n) std::nth_element(out, out + k, out + n, better<K>);
    std::sort(out, out + k, better<K>);
    return;
  }
  for (std::int64_t i = 0; i < k; ++i) out[i] = {keys[i], i};
  std::make_heap(out, out + k, better<K>);  // the worst on top
  for (std::int64_t begin = k; begin < n; begin += group) {
    const std::int64_t end = std::min(n, begin + group);
    K best = keys[begin];
    for (std::int64_t i = begin + 1; i < end; ++i) best = std::max(best, keys[i]);
    if (best <= out->key) continue;  // of equal keys the earlier one is better
    for (std::int64_t i = begin; i < end; ++i) {
      if (keys[i] <= out->key) continue;
      std::pop_heap(out, out + k, better<K>);
      out[k - 1] = {keys[i], i};
      std::push_heap(out, out + k, better<K>);
    }
  }
  std::sort_heap(out, out + k, better<K>);
}

/// Working memory of one line.
template <class K>
std::size_t line_bytes(std::int64_t n, std::int64_t k) {
  const auto entries = static_cast<std::size_t>(k > n / 4 ? n : k);
  return (static_cast<std::size_t>(n) * sizeof(K) + entries * sizeof(Entry<K>) + 127) / 64 * 64;
}
/// How lines are divided into tasks of `width` lines.
struct Tasks {
  std::int64_t lines, width, count;

  explicit Tasks(const sdk::AxisView& view)
      : lines(view.outer * view.inner),
        width(std::max<std::int64_t>(1, smallest_task / std::max<std::int64_t>(view.n, 1))),
        count((lines + width - 1) / width) {}
};

std::size_t scratch(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_top_k>();
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
  const bool wide = call.inputs[0].dtype == TENON_DTYPE_F64 || call.inputs[0].dtype == TENON_DTYPE_I64;
  return (wide ? line_bytes<std::int64_t>(view.n, attributes.k) : line_bytes<std::int32_t>(view.n, attributes.k)) *
         static_cast<std::size_t>(worker_count(call.host, Tasks(view).count));
}

/// The k best elements of each line along the axis, in order; equal ones are ordered by index.
///
/// Shapes  x dense (..., n, ...), values and indices (..., k, ...).
template <class T>
void top_k(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_top_k>();
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], attributes.axis);
  const std::int64_t n = view.n, inner = view.inner, k = attributes.k;
  const bool largest = attributes.largest != 0;
  if (k == 0) return;
  const T* const x = call.input<T>(0);
  T* const values = call.output<T>(0);
  auto* const indices = call.output<std::int64_t>(1);
  const Tasks tasks(view);
  for_each_task(call.host, tasks.count, [&](std::int64_t task, std::int64_t worker) {
    using K = Key<T>;
    char* const own = static_cast<char*>(call.scratch) + static_cast<std::size_t>(worker) * line_bytes<K>(n, k);
    auto* const best = reinterpret_cast<Entry<K>*>(own);
    auto* const keys = reinterpret_cast<K*>(own + static_cast<std::size_t>(k > n / 4 ? n : k) * sizeof(Entry<K>));
    for (std::int64_t line = task * tasks.width; line < std::min(tasks.lines, (task + 1) * tasks.width); ++line) {
      const T* const from = x + line / inner * n * inner + line % inner;
      for (std::int64_t i = 0; i < n; ++i) keys[i] = key_of(from[i * inner], largest);
      select(keys, n, k, best);
      const std::int64_t to = line / inner * k * inner + line % inner;
      for (std::int64_t i = 0; i < k; ++i) {
        indices[to + i * inner] = best[i].index;
        values[to + i * inner] = from[best[i].index * inner];
      }
    }
  });
}

}  // namespace
TENON_KERNEL_WITH(top_k, (sdk::Traits{.scratch = scratch}), float, double, std::int32_t, std::int64_t)
}  // namespace tenon::openblas
