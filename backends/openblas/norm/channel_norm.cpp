// SPDX-License-Identifier: Apache-2.0
#include "norm/channel_norm.h"

#include "simd/foreach_target.h"

#include <algorithm>

#include "simd/bf16.h"
#include "simd/partial_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Rows whose sum is computed in T before it is added in f64, and rows that are read together, across all columns.
constexpr std::int64_t block = 64;
constexpr std::int64_t group = 8;

/// Sums in T over a block of rows, for up to channel_strip columns. Accessed in whole vectors, so elements after the last column are
/// padding.
template <class T>
struct BlockSums {
  HWY_ALIGN T first[channel_strip];
  HWY_ALIGN T second[channel_strip];

  void clear(std::int64_t columns) {
    columns = HWY_MIN(channel_strip, columns + lanes(Wide<T>()));
    std::fill_n(first, columns, T{0});
    std::fill_n(second, columns, T{0});
  }
};

/// Adds terms(i, j, n, first, second) of rows i < rows to both sums.
template <class T, class Terms>
HWY_INLINE void add_rows(BlockSums<T>& sums, std::int64_t rows, std::int64_t columns, const Terms& terms) {
  const Wide<T> d;
  for (std::int64_t begin = 0; begin < rows; begin += group) {
    const std::int64_t end = HWY_MIN(rows, begin + group);
    across<T>(columns, [&](std::int64_t j, std::int64_t n) HWY_ATTR {
      auto first = hn::Load(d, sums.first + j), second = hn::Load(d, sums.second + j);
      for (std::int64_t i = begin; i < end; ++i) terms(i, j, n, first, second);
      hn::Store(first, d, sums.first + j);
      hn::Store(second, d, sums.second + j);
    });
  }
}

/// One pass over x. For each block of rows, sums the distances from a centre and their squares. The centre is the mean of all rows before,
/// so that the squares are no larger than what they contribute; the first block uses its own mean.
///
/// Source  Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance (1983): how blocks are combined.
template <class T>
void statistics(const T* x, const StridedRows& extent, double* mean, double* squares) {
  using V = hn::Vec<Wide<Computed<T>>>;
  const Wide<Computed<T>> d;
  BlockSums<Computed<T>> sums;
  HWY_ALIGN Computed<T> centre[channel_strip];
  double before = 0;
  for (std::int64_t begin = 0; begin < extent.rows; begin += block) {
    const std::int64_t rows = HWY_MIN(block, extent.rows - begin);
    const T* const from = x + begin * extent.stride;
    const auto n = static_cast<double>(rows);
    // choose the centre
    if (begin == 0) {
      sums.clear(extent.columns);
      add_rows<Computed<T>>(sums, rows, extent.columns, [&](std::int64_t i, std::int64_t j, std::int64_t m, V& first, V&) HWY_ATTR {
        first = hn::Add(first, load(d, from + i * extent.stride + j, m));
      });
      for (std::int64_t j = 0; j < extent.columns; ++j) {
        centre[j] = static_cast<Computed<T>>(sums.first[j] / n);
        mean[j] = centre[j];
        squares[j] = 0;
      }
      std::fill(centre + extent.columns, centre + channel_strip, Computed<T>{0});
    } else {
      for (std::int64_t j = 0; j < extent.columns; ++j) centre[j] = static_cast<Computed<T>>(mean[j]);
    }
    // sum the distances and their squares
    sums.clear(extent.columns);
    add_rows<Computed<T>>(sums, rows, extent.columns, [&](std::int64_t i, std::int64_t j, std::int64_t m, V& first, V& second) HWY_ATTR {
      const V distance = hn::Sub(load(d, from + i * extent.stride + j, m), hn::Load(d, centre + j));
      first = hn::Add(first, distance);
      second = hn::MulAdd(distance, distance, second);
    });
    // combine with the blocks before
    const double share = n / (before + n), between = before * share;
    for (std::int64_t j = 0; j < extent.columns; ++j) {
      const double sum = sums.first[j];
      const double shift = (static_cast<double>(centre[j]) - mean[j]) + sum / n;
      squares[j] += (static_cast<double>(sums.second[j]) - sum * (sum / n)) + shift * shift * between;
      mean[j] += shift * share;
    }
    before += n;
  }
}

template <class T>
void gradient_sums(const T* dy, const T* x, const StridedRows& extent, const Computed<T>* mean, double* out_sum, double* out_product) {
  using V = hn::Vec<Wide<Computed<T>>>;
  const Wide<Computed<T>> d;
  BlockSums<Computed<T>> sums;
  std::fill_n(out_sum, extent.columns, 0.0);
  std::fill_n(out_product, extent.columns, 0.0);
  for (std::int64_t begin = 0; begin < extent.rows; begin += block) {
    const std::int64_t at = begin * extent.stride;
    sums.clear(extent.columns);
    add_rows<Computed<T>>(sums, HWY_MIN(block, extent.rows - begin), extent.columns,
                          [&](std::int64_t i, std::int64_t j, std::int64_t m, V& first, V& second) HWY_ATTR {
                            const V g = load(d, dy + at + i * extent.stride + j, m);
                            const V distance = hn::Sub(load(d, x + at + i * extent.stride + j, m), load(d, mean + j, m));
                            first = hn::Add(first, g);
                            second = hn::MulAdd(g, distance, second);
                          });
    for (std::int64_t j = 0; j < extent.columns; ++j) {
      out_sum[j] += static_cast<double>(sums.first[j]);
      out_product[j] += static_cast<double>(sums.second[j]);
    }
  }
}

template <class T>
void normalise(const T* x, T* y, const StridedRows& extent, const Computed<T>* centre, const Computed<T>* factor,
               const Computed<T>* offset) {
  const Wide<Computed<T>> d;
  for (std::int64_t i = 0; i < extent.rows; ++i, x += extent.stride, y += extent.stride) {
    across<Computed<T>>(extent.columns, [&](std::int64_t j, std::int64_t n) HWY_ATTR {
      const auto distance = hn::Sub(load(d, x + j, n), load(d, centre + j, n));
      store(hn::MulAdd(distance, load(d, factor + j, n), load(d, offset + j, n)), d, y + j, n);
    });
  }
}

template <class T>
void gradient(const T* dy, const T* x, T* dx, const StridedRows& extent, const Computed<T>* mean, const Computed<T>* by_dy,
              const Computed<T>* by_x, const Computed<T>* constant) {
  const Wide<Computed<T>> d;
  for (std::int64_t i = 0; i < extent.rows; ++i, dy += extent.stride, x += extent.stride, dx += extent.stride) {
    across<Computed<T>>(extent.columns, [&](std::int64_t j, std::int64_t n) HWY_ATTR {
      const auto distance = hn::Sub(load(d, x + j, n), load(d, mean + j, n));
      const auto rest = hn::MulAdd(distance, load(d, by_x + j, n), load(d, constant + j, n));
      store(hn::MulAdd(load(d, dy + j, n), load(d, by_dy + j, n), rest), d, dx + j, n);
    });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
ChannelNorm<T, SumOf<T>> channel_norm() {
  return {TENON_DISPATCH(statistics<T>), TENON_DISPATCH(gradient_sums<T>), TENON_DISPATCH(normalise<T>), TENON_DISPATCH(gradient<T>)};
}
TENON_INSTANTIATE(channel_norm, sdk::BFloat16)
TENON_INSTANTIATE_FLOATS(channel_norm)

}  // namespace tenon::openblas
#endif
