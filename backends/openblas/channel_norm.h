// channel_norm.h - the vector code of batch normalisation: passes over rows of columns, where each column has numbers of its own.
#pragma once

#include <cstdint>

namespace tenon::openblas {

/// Columns that passes which add up take at once: what they carry stays in the first cache.
inline constexpr std::int64_t channel_strip = 256;

/// Element (i, j) of an operand lies at [i * stride + j], i < rows, j < columns.
struct Sheet {
  std::int64_t rows, stride, columns;
};

template <class T>
struct ChannelNorm {
  /// Of each column, the mean and the sum of the squared distances from it. At least one row, at most channel_strip columns.
  void (*statistics)(const T* x, const Sheet& sheet, double* out_mean, double* out_squares);
  /// Of each column, sum(dy) and sum(dy (x - mean)). At most channel_strip columns.
  void (*gradient_sums)(const T* dy, const T* x, const Sheet& sheet, const T* mean, double* out_sum, double* out_product);
  /// y = (x - centre) factor + offset; y may be x.
  void (*normalise)(const T* x, T* y, const Sheet& sheet, const T* centre, const T* factor, const T* offset);
  /// dx = by_dy dy + by_x (x - mean) + constant
  void (*gradient)(const T* dy, const T* x, T* dx, const Sheet& sheet, const T* mean, const T* by_dy, const T* by_x, const T* constant);
};

/// For this machine; the argument selects the type.
ChannelNorm<float> channel_norm(const float*);
ChannelNorm<double> channel_norm(const double*);

}  // namespace tenon::openblas
