// SPDX-License-Identifier: Apache-2.0
#include "gemm/vector_products.h"

#include "simd/foreach_target.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Rows that are read at the same time.
constexpr std::int64_t group_rows = 4;
// Bytes by which the reads of each row are fetched ahead. A processor's own prefetcher stops at the end of a page of 4 KiB, which a row
// reaches soon; these requests also translate the next page's address early.
constexpr std::int64_t bytes_ahead = 2048;

/// The sums of R rows, each in two vectors, so that R 2 chains of additions are under way.
template <int R, class T>
HWY_INLINE void multiply_rows(const T* m, std::int64_t columns, std::int64_t row_step, std::int64_t next_rows, T alpha, const T* x, T* y) {
  const Wide<T> d;
  const std::int64_t n = lanes(d);
  constexpr std::int64_t line = 64 / sizeof(T);
  hn::Vec<Wide<T>> even[R], odd[R];
  for (int r = 0; r < R; ++r) even[r] = odd[r] = hn::Zero(d);
  const std::int64_t step = std::max(2 * n, line);
  const std::int64_t ahead = std::min<std::int64_t>(bytes_ahead / sizeof(T), columns);
  std::int64_t i = 0;
  const auto add = [&](std::int64_t end, std::int64_t fetch) HWY_ATTR {
    for (; i + step <= end; i += step) {
      for (int r = 0; r < R; ++r) {
        const T* const row = m + r * row_step + i;
        for (std::int64_t j = 0; j < step; j += line) hwy::Prefetch(row + fetch + j);
        for (std::int64_t j = 0; j < step; j += 2 * n) {
          even[r] = hn::MulAdd(hn::LoadU(d, row + j), hn::LoadU(d, x + i + j), even[r]);
          odd[r] = hn::MulAdd(hn::LoadU(d, row + j + n), hn::LoadU(d, x + i + j + n), odd[r]);
        }
      }
    }
  };
  // The last part of a row fetches the beginning of the row that is read next.
  add(columns - ahead, ahead);
  add(columns, next_rows * row_step + ahead - columns);
  for (; i < columns; i += n) {
    const std::int64_t left = columns - i;
    const auto part = left < n ? load_first(d, x + i, left) : hn::LoadU(d, x + i);
    for (int r = 0; r < R; ++r) {
      const T* const row = m + r * row_step + i;
      even[r] = hn::MulAdd(left < n ? load_first(d, row, left) : hn::LoadU(d, row), part, even[r]);
    }
  }
  for (int r = 0; r < R; ++r) y[r] = alpha * hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
}

template <class T>
void multiply_all_rows(const T* m, std::int64_t rows, std::int64_t columns, std::int64_t row_step, T alpha, const T* x, T* y) {
  std::int64_t r = 0;
  for (; r + group_rows <= rows; r += group_rows) {
    multiply_rows<group_rows>(m + r * row_step, columns, row_step, group_rows, alpha, x, y + r);
  }
  for (; r < rows; ++r) multiply_rows<1>(m + r * row_step, columns, row_step, 1, alpha, x, y + r);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void multiply_vector(const T* m, std::int64_t rows, std::int64_t columns, std::int64_t row_step, T alpha, const T* x, T* y) {
  TENON_DISPATCH(multiply_all_rows<T>)(m, rows, columns, row_step, alpha, x, y);
}
TENON_INSTANTIATE_FLOATS(multiply_vector)

}  // namespace tenon::openblas
#endif
