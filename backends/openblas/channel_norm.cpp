#include "channel_norm.h"

#include "instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "channel_norm.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>

#include "parts.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Rows that are added up in T before their sum is carried on in f64, and rows read at a time, all columns of them.
constexpr std::int64_t block = 64;
constexpr std::int64_t group = 8;

/// Sums in T over a block of rows, for up to channel_strip columns. Whole registers: what lies behind the last column is room.
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

/// One pass over x. Of each block of rows, the sums of the distances from a centre and of their squares: from the mean of all rows before
/// it, so that squares are no larger than what they add to the result; the first block has its own mean as centre.
///
/// Source  Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance (1983): how blocks are put together.
template <class T>
void statistics(const T* x, const Sheet& sheet, double* mean, double* squares) {
  using V = hn::Vec<Wide<T>>;
  const Wide<T> d;
  BlockSums<T> sums;
  HWY_ALIGN T centre[channel_strip];
  double before = 0;
  for (std::int64_t begin = 0; begin < sheet.rows; begin += block) {
    const std::int64_t rows = HWY_MIN(block, sheet.rows - begin);
    const T* const from = x + begin * sheet.stride;
    const auto n = static_cast<double>(rows);
    if (begin == 0) {
      sums.clear(sheet.columns);
      add_rows<T>(sums, rows, sheet.columns, [&](std::int64_t i, std::int64_t j, std::int64_t m, V& first, V&) HWY_ATTR {
        first = hn::Add(first, load(d, from + i * sheet.stride + j, m));
      });
      for (std::int64_t j = 0; j < sheet.columns; ++j) {
        centre[j] = static_cast<T>(sums.first[j] / n);
        mean[j] = centre[j];
        squares[j] = 0;
      }
      std::fill(centre + sheet.columns, centre + channel_strip, T{0});
    } else {
      for (std::int64_t j = 0; j < sheet.columns; ++j) centre[j] = static_cast<T>(mean[j]);
    }
    sums.clear(sheet.columns);
    add_rows<T>(sums, rows, sheet.columns, [&](std::int64_t i, std::int64_t j, std::int64_t m, V& first, V& second) HWY_ATTR {
      const V distance = hn::Sub(load(d, from + i * sheet.stride + j, m), hn::Load(d, centre + j));
      first = hn::Add(first, distance);
      second = hn::MulAdd(distance, distance, second);
    });
    const double share = n / (before + n), between = before * share;
    for (std::int64_t j = 0; j < sheet.columns; ++j) {
      const double sum = sums.first[j];
      const double shift = (static_cast<double>(centre[j]) - mean[j]) + sum / n;
      squares[j] += (static_cast<double>(sums.second[j]) - sum * (sum / n)) + shift * shift * between;
      mean[j] += shift * share;
    }
    before += n;
  }
}

template <class T>
void gradient_sums(const T* dy, const T* x, const Sheet& sheet, const T* mean, double* out_sum, double* out_product) {
  using V = hn::Vec<Wide<T>>;
  const Wide<T> d;
  BlockSums<T> sums;
  std::fill_n(out_sum, sheet.columns, 0.0);
  std::fill_n(out_product, sheet.columns, 0.0);
  for (std::int64_t begin = 0; begin < sheet.rows; begin += block) {
    const std::int64_t at = begin * sheet.stride;
    sums.clear(sheet.columns);
    add_rows<T>(sums, HWY_MIN(block, sheet.rows - begin), sheet.columns,
                [&](std::int64_t i, std::int64_t j, std::int64_t m, V& first, V& second) HWY_ATTR {
                  const V g = load(d, dy + at + i * sheet.stride + j, m);
                  const V distance = hn::Sub(load(d, x + at + i * sheet.stride + j, m), load(d, mean + j, m));
                  first = hn::Add(first, g);
                  second = hn::MulAdd(g, distance, second);
                });
    for (std::int64_t j = 0; j < sheet.columns; ++j) {
      out_sum[j] += static_cast<double>(sums.first[j]);
      out_product[j] += static_cast<double>(sums.second[j]);
    }
  }
}

template <class T>
void normalise(const T* x, T* y, const Sheet& sheet, const T* centre, const T* factor, const T* offset) {
  const Wide<T> d;
  for (std::int64_t i = 0; i < sheet.rows; ++i, x += sheet.stride, y += sheet.stride) {
    across<T>(sheet.columns, [&](std::int64_t j, std::int64_t n) HWY_ATTR {
      const auto distance = hn::Sub(load(d, x + j, n), load(d, centre + j, n));
      store(hn::MulAdd(distance, load(d, factor + j, n), load(d, offset + j, n)), d, y + j, n);
    });
  }
}

template <class T>
void gradient(const T* dy, const T* x, T* dx, const Sheet& sheet, const T* mean, const T* by_dy, const T* by_x, const T* constant) {
  const Wide<T> d;
  for (std::int64_t i = 0; i < sheet.rows; ++i, dy += sheet.stride, x += sheet.stride, dx += sheet.stride) {
    across<T>(sheet.columns, [&](std::int64_t j, std::int64_t n) HWY_ATTR {
      const auto distance = hn::Sub(load(d, x + j, n), load(d, mean + j, n));
      const auto rest = hn::MulAdd(distance, load(d, by_x + j, n), load(d, constant + j, n));
      store(hn::MulAdd(load(d, dy + j, n), load(d, by_dy + j, n), rest), d, dx + j, n);
    });
  }
}

}  // namespace

ChannelNorm<float> channel_norm_f32() {
  return {statistics<float>, gradient_sums<float>, normalise<float>, gradient<float>};
}
ChannelNorm<double> channel_norm_f64() {
  return {statistics<double>, gradient_sums<double>, normalise<double>, gradient<double>};
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

ChannelNorm<float> channel_norm(const float*) {
  return TENON_BEST(channel_norm_f32)();
}
ChannelNorm<double> channel_norm(const double*) {
  return TENON_BEST(channel_norm_f64)();
}

}  // namespace tenon::openblas
#endif
