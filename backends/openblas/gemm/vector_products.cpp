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

// Rows of fewer bytes are read four at a time, since adding up the lanes of a sum takes longer than reading them. Longer ones are read one
// after another: a single sequence of addresses arrives faster than four that are a row apart, from caches and from memory. Rows so long
// that x leaves little of L1 are read four at a time again, since a load of x is then used for four rows. With vectors of less than a
// cache line all rows are read four at a time.
constexpr std::int64_t bytes_of_long_row = 1024, bytes_of_longest_row = 24 * 1024;
constexpr std::int64_t group_rows = 4;
// Bytes by which reads are fetched ahead. A processor's own prefetcher stops at the end of a page of 4 KiB; these requests also translate
// the next page's address early. bytes_ahead is that of each row of a group.
constexpr std::int64_t bytes_ahead_of_long_row = 4096, bytes_ahead = 2048;

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

/// The sum of a row, in the order of multiply_rows(). What is read next is assumed to follow in memory.
template <class T>
HWY_INLINE T multiply_long_row(const T* row, std::int64_t columns, const T* x) {
  const Wide<T> d;
  const std::int64_t n = lanes(d);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * n <= columns; i += 2 * n) {
    hwy::Prefetch(row + i + bytes_ahead_of_long_row / sizeof(T));
    hwy::Prefetch(row + i + n + bytes_ahead_of_long_row / sizeof(T));
    even = hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), even);
    odd = hn::MulAdd(hn::LoadU(d, row + i + n), hn::LoadU(d, x + i + n), odd);
  }
  for (; i + n <= columns; i += n) even = hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), even);
  if (i < columns) even = hn::MulAdd(load_first(d, row + i, columns - i), load_first(d, x + i, columns - i), even);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

template <class T>
void multiply_all_rows(const T* m, std::int64_t rows, std::int64_t columns, std::int64_t row_step, T alpha, const T* x, T* y) {
  const std::int64_t bytes = columns * static_cast<std::int64_t>(sizeof(T));
  std::int64_t r = 0;
  if (lanes(Wide<T>()) * sizeof(T) == 64 && bytes >= bytes_of_long_row && bytes <= bytes_of_longest_row) {
    for (; r < rows; ++r) y[r] = alpha * multiply_long_row(m + r * row_step, columns, x);
    return;
  }
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
