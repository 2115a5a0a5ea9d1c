// SPDX-License-Identifier: Apache-2.0
// strided_loop.h - elementwise loops over operands of any strides, divided into strided runs for the vector code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// The traits of elementwise kernels.
inline constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true, .elementwise = true};

/// A loop nest over the elements of a dense result, with the strides of N operands. Neighbouring dimensions are merged where every
/// operand allows it, so that the innermost one, the run, is as long as possible. rank >= 1.
template <int N>
struct StridedLoop {
  std::uint32_t rank = 1;
  std::int64_t count = 1;
  std::array<std::int64_t, TENON_MAX_RANK> shape{1};
  std::array<std::array<std::int64_t, TENON_MAX_RANK>, N> strides{};

  std::int64_t run_stride(int operand) const { return strides[operand][rank - 1]; }

  /// The operands' offsets for element i of the result.
  std::array<std::int64_t, N> offsets(std::int64_t i) const {
    std::array<std::int64_t, N> out{};
    for (std::uint32_t d = rank; d-- > 0; i /= shape[d]) {
      for (int k = 0; k < N; ++k) out[k] += i % shape[d] * strides[k][d];
    }
    return out;
  }
};

/// The operands are broadcast to the shape of y by NumPy's rules.
template <int N>
StridedLoop<N> strided_loop_over(const sdk::Operand& y, const std::array<const sdk::Operand*, N>& operands) {
  StridedLoop<N> loop;
  loop.count = y.count;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < y.rank; ++i) {
    if (y.shape[i] == 1) continue;
    std::array<std::int64_t, N> stride{};
    for (int k = 0; k < N; ++k) {
      const sdk::Operand& x = *operands[k];
      const std::uint32_t missing = y.rank - x.rank;
      stride[k] = i < missing || x.shape[i - missing] == 1 ? 0 : x.strides[i - missing];
    }
    bool merges = rank > 0;
    for (int k = 0; k < N && merges; ++k) merges = loop.strides[k][rank - 1] == stride[k] * y.shape[i];
    if (merges) {
      loop.shape[rank - 1] *= y.shape[i];
    } else {
      loop.shape[rank] = y.shape[i];
      ++rank;
    }
    for (int k = 0; k < N; ++k) loop.strides[k][rank - 1] = stride[k];
  }
  loop.rank = std::max<std::uint32_t>(rank, 1);
  return loop;
}

/// Calls body(offsets, at, n) for runs that cover the result's elements [begin, end). A run has n elements and starts at element `at`;
/// operand k starts at offsets[k] and advances by run_stride(k).
template <int N, class Body>
void for_each_run(const StridedLoop<N>& loop, std::int64_t begin, std::int64_t end, Body&& body) {
  if (begin >= end) return;
  std::array<std::int64_t, TENON_MAX_RANK> index{};
  std::int64_t rest = begin;
  for (std::uint32_t i = loop.rank; i-- > 0; rest /= loop.shape[i]) index[i] = rest % loop.shape[i];
  std::array<std::int64_t, N> offsets = loop.offsets(begin);
  const std::uint32_t last = loop.rank - 1;
  for (std::int64_t at = begin;;) {
    const std::int64_t n = std::min(loop.shape[last] - index[last], end - at);
    body(offsets, at, n);
    at += n;
    if (at >= end) return;
    for (int k = 0; k < N; ++k) offsets[k] -= index[last] * loop.strides[k][last];
    index[last] = 0;
    for (std::uint32_t i = last; i-- > 0;) {
      for (int k = 0; k < N; ++k) offsets[k] += loop.strides[k][i];
      if (++index[i] < loop.shape[i]) break;
      for (int k = 0; k < N; ++k) offsets[k] -= loop.shape[i] * loop.strides[k][i];
      index[i] = 0;
    }
  }
}

/// The operands of one contiguous segment of an elementwise op. An operand in `scalars` has a single element for the whole segment.
template <class T, int N>
struct Segment {
  std::array<const T*, N> x{};
  unsigned scalars = 0;  ///< bit k: operand k is a single element
};

/// Describes the whole op as one segment; false if the operands' layout does not allow it.
template <class T, int N>
bool is_one_segment(const sdk::Call& call, unsigned scalars, Segment<T, N>& out_segment) {
  const std::int64_t count = call.outputs[0].count;
  for (int k = 0; k < N; ++k) {
    const sdk::Operand& x = call.inputs[k];
    out_segment.x[k] = static_cast<const T*>(x.data);
    if (x.dense && x.count == count) continue;
    if ((scalars >> k & 1u) == 0 || out_segment.scalars != 0) return false;
    for (std::uint32_t d = 0; d < x.rank; ++d) {
      if (x.strides[d] != 0 && x.shape[d] != 1) return false;
    }
    out_segment.scalars = 1u << k;
  }
  return true;
}

/// y = op(x...) elementwise with broadcasting: calls body(segment, y, n) with segments of the call's operands 0..N-1. `scalars` is the mask
/// of operands (at most one at a time) that body accepts as a single element; other strides than 1 are gathered into a small buffer first.
/// `grain` is the smallest number of elements worth a thread.
template <class T, class Y, int N, class Body>
void elementwise(const sdk::Call& call, std::int64_t grain, unsigned scalars, const Body& body) {
  // A piece of a chain of such ops takes a microsecond or less, so the common case skips the set-up below.
  Segment<T, N> whole;
  if (call.outputs[0].count <= grain && call.outputs[0].count > 0 && is_one_segment(call, scalars, whole)) {
    body(whole, call.output<Y>(0), call.outputs[0].count);
    return;
  }
  std::array<const sdk::Operand*, N> operands{};
  std::array<const T*, N> data{};
  for (int k = 0; k < N; ++k) {
    operands[k] = &call.inputs[k];
    data[k] = call.input<T>(k);
  }
  const StridedLoop<N> loop = strided_loop_over<N>(call.outputs[0], operands);
  Y* const y = call.output<Y>(0);
  call.host.parallel_for(loop.count, grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(loop, begin, end, [&](const std::array<std::int64_t, N>& offsets, std::int64_t at, std::int64_t n) {
      Segment<T, N> segment;
      std::array<std::int64_t, N> gathered{};  // 1 for operands that have to be gathered
      bool gathers = false;
      for (int k = 0; k < N; ++k) {
        const std::int64_t stride = loop.run_stride(k);
        segment.x[k] = data[k] + offsets[k];
        if (stride == 1 || n == 1) continue;
        if (stride == 0 && (scalars >> k & 1u) != 0 && segment.scalars == 0) {
          segment.scalars = 1u << k;
        } else {
          gathered[k] = 1;
          gathers = true;
        }
      }
      if (!gathers) {
        body(segment, y + at, n);
        return;
      }
      constexpr std::int64_t piece = 256;  // 1 or 2 KiB per operand, which stays in L1
      T buffer[N][piece];
      for (std::int64_t done = 0; done < n; done += piece) {
        const std::int64_t m = std::min(piece, n - done);
        Segment<T, N> part = segment;
        for (int k = 0; k < N; ++k) {
          const std::int64_t stride = loop.run_stride(k);
          const T* from = segment.x[k] + done * stride;
          if (gathered[k] != 0) {
            for (std::int64_t i = 0; i < m; ++i) buffer[k][i] = from[i * stride];
            part.x[k] = buffer[k];
          } else {
            part.x[k] = from;
          }
        }
        body(part, y + at + done, m);
      }
    });
  });
}

/// y = op(x) elementwise for one operand, by a loop over adjacent elements.
template <class T, class Y>
void elementwise(const sdk::Call& call, std::int64_t grain, void (*loop)(const T* x, Y* y, std::int64_t n)) {
  elementwise<T, Y, 1>(call, grain, 0, [loop](const Segment<T, 1>& x, Y* y, std::int64_t n) { loop(x.x[0], y, n); });
}

/// A loop over a segment of two operands.
template <class T, class Y>
using PairLoop = void (*)(const Segment<T, 2>& x, Y* y, std::int64_t n);

/// y[i] = F{}(a[i], b[i]), in plain loops.
template <class F, class T, class Y>
void map_pairs(const Segment<T, 2>& s, Y* y, std::int64_t n) {
  const T *a = s.x[0], *b = s.x[1];
  if (s.scalars == 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F{}(a[i], b[i]);
  } else if (s.scalars == 1) {
    const T one = *a;
    for (std::int64_t i = 0; i < n; ++i) y[i] = F{}(one, b[i]);
  } else {
    const T one = *b;
    for (std::int64_t i = 0; i < n; ++i) y[i] = F{}(a[i], one);
  }
}

}  // namespace tenon::openblas
