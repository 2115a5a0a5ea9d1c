// walk.h - elementwise loops over operands of any strides, cut into straight runs for the vector code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// What elementwise kernels declare.
inline constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true, .elementwise = true};

/// How N operands lie over the elements of a dense result. Neighbouring dimensions are merged where every operand allows it, so that the
/// last one, the run, is as long as it can be. rank >= 1.
template <int N>
struct Walk {
  std::uint32_t rank = 1;
  std::int64_t count = 1;
  std::array<std::int64_t, TENON_MAX_RANK> shape{1};
  std::array<std::array<std::int64_t, TENON_MAX_RANK>, N> strides{};

  std::int64_t run_stride(int operand) const { return strides[operand][rank - 1]; }

  /// Where element i of the result finds its operands.
  std::array<std::int64_t, N> offsets(std::int64_t i) const {
    std::array<std::int64_t, N> out{};
    for (std::uint32_t d = rank; d-- > 0; i /= shape[d]) {
      for (int k = 0; k < N; ++k) out[k] += i % shape[d] * strides[k][d];
    }
    return out;
  }
};

/// Operands broadcast to the shape of y as NumPy does.
template <int N>
Walk<N> walk_over(const sdk::Operand& y, const std::array<const sdk::Operand*, N>& operands) {
  Walk<N> walk;
  walk.count = y.count;
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
    for (int k = 0; k < N && merges; ++k) merges = walk.strides[k][rank - 1] == stride[k] * y.shape[i];
    if (merges) {
      walk.shape[rank - 1] *= y.shape[i];
    } else {
      walk.shape[rank] = y.shape[i];
      ++rank;
    }
    for (int k = 0; k < N; ++k) walk.strides[k][rank - 1] = stride[k];
  }
  walk.rank = std::max<std::uint32_t>(rank, 1);
  return walk;
}

/// body(offsets, at, n) for straight runs that cover the result's elements [begin, end): n elements from `at` on, operand k's first one at
/// offsets[k], the next run_stride(k) further.
template <int N, class Body>
void for_each_run(const Walk<N>& walk, std::int64_t begin, std::int64_t end, Body&& body) {
  if (begin >= end) return;
  std::array<std::int64_t, TENON_MAX_RANK> index{};
  std::int64_t rest = begin;
  for (std::uint32_t i = walk.rank; i-- > 0; rest /= walk.shape[i]) index[i] = rest % walk.shape[i];
  std::array<std::int64_t, N> offsets = walk.offsets(begin);
  const std::uint32_t last = walk.rank - 1;
  for (std::int64_t at = begin;;) {
    const std::int64_t n = std::min(walk.shape[last] - index[last], end - at);
    body(offsets, at, n);
    at += n;
    if (at >= end) return;
    for (int k = 0; k < N; ++k) offsets[k] -= index[last] * walk.strides[k][last];
    index[last] = 0;
    for (std::uint32_t i = last; i-- > 0;) {
      for (int k = 0; k < N; ++k) offsets[k] += walk.strides[k][i];
      if (++index[i] < walk.shape[i]) break;
      for (int k = 0; k < N; ++k) offsets[k] -= walk.shape[i] * walk.strides[k][i];
      index[i] = 0;
    }
  }
}

/// One stretch of an elementwise op: where each operand begins. Elements are adjacent, but those of an operand in `scalars` are all the
/// one at its address.
template <class T, int N>
struct Stretch {
  std::array<const T*, N> x{};
  unsigned scalars = 0;  ///< bit k: operand k is a single element
};

/// The whole of an elementwise op as one stretch; false if its operands do not lie so.
template <class T, int N>
bool is_one_stretch(const sdk::Call& call, unsigned scalars, Stretch<T, N>& out_stretch) {
  const std::int64_t count = call.outputs[0].count;
  for (int k = 0; k < N; ++k) {
    const sdk::Operand& x = call.inputs[k];
    out_stretch.x[k] = static_cast<const T*>(x.data);
    if (x.dense && x.count == count) continue;
    if ((scalars >> k & 1u) == 0 || out_stretch.scalars != 0) return false;
    for (std::uint32_t d = 0; d < x.rank; ++d) {
      if (x.strides[d] != 0 && x.shape[d] != 1) return false;
    }
    out_stretch.scalars = 1u << k;
  }
  return true;
}

/// y = op(x...) elementwise with broadcasting: body(stretch, y, n) gets the operands 0..N-1 of the call in straight pieces. `scalars` has
/// the operands (at most one at a time) that body takes as a single element; other strides than 1 are gathered into a small buffer first.
/// `grain` elements are worth a thread of their own.
template <class T, class Y, int N, class Body>
void elementwise(const sdk::Call& call, std::int64_t grain, unsigned scalars, const Body& body) {
  // A piece of a chain of such ops is a microsecond's work or less: what most of them are is seen at once.
  Stretch<T, N> whole;
  if (call.outputs[0].count <= grain && call.outputs[0].count > 0 && is_one_stretch(call, scalars, whole)) {
    body(whole, call.output<Y>(0), call.outputs[0].count);
    return;
  }
  std::array<const sdk::Operand*, N> operands{};
  std::array<const T*, N> data{};
  for (int k = 0; k < N; ++k) {
    operands[k] = &call.inputs[k];
    data[k] = call.input<T>(k);
  }
  const Walk<N> walk = walk_over<N>(call.outputs[0], operands);
  Y* const y = call.output<Y>(0);
  call.host.parallel_for(walk.count, grain, [&](std::int64_t begin, std::int64_t end) {
    for_each_run(walk, begin, end, [&](const std::array<std::int64_t, N>& offsets, std::int64_t at, std::int64_t n) {
      Stretch<T, N> stretch;
      std::array<std::int64_t, N> gathered{};  // the stride of an operand that has to be gathered, else 0
      bool gathers = false;
      for (int k = 0; k < N; ++k) {
        const std::int64_t stride = walk.run_stride(k);
        stretch.x[k] = data[k] + offsets[k];
        if (stride == 1 || n == 1) continue;
        if (stride == 0 && (scalars >> k & 1u) != 0 && stretch.scalars == 0) {
          stretch.scalars = 1u << k;
        } else {
          gathered[k] = 1;
          gathers = true;
        }
      }
      if (!gathers) {
        body(stretch, y + at, n);
        return;
      }
      constexpr std::int64_t piece = 256;  // a kilobyte or two per operand: stays in the first cache
      T buffer[N][piece];
      for (std::int64_t done = 0; done < n; done += piece) {
        const std::int64_t m = std::min(piece, n - done);
        Stretch<T, N> part = stretch;
        for (int k = 0; k < N; ++k) {
          const std::int64_t stride = walk.run_stride(k);
          const T* from = stretch.x[k] + done * stride;
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

}  // namespace tenon::openblas
