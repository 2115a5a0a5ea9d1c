// SPDX-License-Identifier: Apache-2.0
#include "elementwise/strided_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "elementwise/interleave.h"
#include "elementwise/strided_loop.h"
#include "elementwise/transpose.h"

namespace tenon::openblas {
namespace {

// Bytes worth a thread: about 20 us of copying, or of transposing, which is several times slower.
constexpr std::int64_t copy_grain_bytes = 256 * 1024;
constexpr std::int64_t transpose_grain_bytes = 64 * 1024;

/// A 16-byte element.
struct Pair {
  std::uint64_t words[2];
};

/// y[i] = x[i * stride]
template <class E>
void gather(const E* x, std::int64_t stride, E* y, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(y, x, static_cast<std::size_t>(n) * sizeof(E));
  } else if (stride == 0) {
    std::fill_n(y, n, *x);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
  }
}

/// A dimension before the last that has stride 1 in x while the last has not; -1 if there is none.
int adjacent_dimension(const StridedLoop<1>& loop) {
  if (loop.run_stride(0) == 1 || loop.run_stride(0) == 0) return -1;
  for (int i = static_cast<int>(loop.rank) - 2; i >= 0; --i) {
    if (loop.strides[0][i] == 1) return i;
  }
  return -1;
}

template <class E>
void transpose(const sdk::Host& host, const StridedLoop<1>& loop, int adjacent, const E* x, E* y) {
  const std::uint32_t last = loop.rank - 1;
  const std::int64_t columns = loop.shape[last];
  const std::int64_t rows = loop.shape[adjacent];
  std::int64_t y_step = 1;
  for (std::uint32_t i = adjacent + 1; i <= last; ++i) y_step *= loop.shape[i];
  // The loop over the remaining dimensions, with their strides in x and y.
  StridedLoop<2> rest;
  rest.rank = 0;
  std::int64_t y_stride = loop.count;
  for (std::uint32_t i = 0; i < last; ++i) {
    y_stride /= loop.shape[i];
    if (static_cast<int>(i) == adjacent) continue;
    rest.shape[rest.rank] = loop.shape[i];
    rest.strides[0][rest.rank] = loop.strides[0][i];
    rest.strides[1][rest.rank] = y_stride;
    rest.count *= loop.shape[i];
    ++rest.rank;
  }
  rest.rank = std::max<std::uint32_t>(rest.rank, 1);

  // The planes of an image become pixels: vectors of the planes are interleaved.
  bool interleaves = columns >= 2 && columns <= max_interleaved_lines && y_step == columns;
  if constexpr (sizeof(E) > sizeof(std::uint32_t)) interleaves = false;
  const std::int64_t strip = interleaves ? 4096 : 64;  // rows at a time
  const std::int64_t strips = (rows + strip - 1) / strip;
  const std::int64_t bytes = std::min(strip, rows) * columns * static_cast<std::int64_t>(sizeof(E));
  const std::int64_t grain = std::max<std::int64_t>(1, transpose_grain_bytes / bytes);
  host.parallel_for(rest.count * strips, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t row = at % strips * strip;
      for_each_run(rest, at / strips, at / strips + 1, [&](const std::array<std::int64_t, 2>& offset, std::int64_t, std::int64_t) {
        const E* const from = x + offset[0] + row;
        E* const out = y + offset[1] + row * y_step;
        const std::int64_t n = std::min(strip, rows - row);
        if constexpr (sizeof(E) <= sizeof(std::uint32_t)) {
          if (interleaves) return interleave_lines(from, loop.run_stride(0), out, n, columns);
        }
        transpose_block(from, loop.run_stride(0), out, y_step, n, columns);
      });
    }
  });
}

template <class E>
void copy(const sdk::Host& host, const StridedLoop<1>& loop, const void* from, void* to) {
  const E* const x = static_cast<const E*>(from);
  E* const y = static_cast<E*>(to);
  const int adjacent = adjacent_dimension(loop);
  if (adjacent >= 0) {
    transpose(host, loop, adjacent, x, y);
    return;
  }
  host.parallel_for(loop.count, copy_grain_bytes / static_cast<std::int64_t>(sizeof(E)), [&](std::int64_t begin, std::int64_t end) {
    for_each_run(loop, begin, end, [&](const std::array<std::int64_t, 1>& offset, std::int64_t at, std::int64_t n) {
      gather(x + offset[0], loop.run_stride(0), y + at, n);
    });
  });
}

/// Both sides are strided; runs that are contiguous in y use `gather`.
template <class E>
void copy_both(const sdk::Host& host, const StridedLoop<2>& loop, const void* from, void* to) {
  const E* const x = static_cast<const E*>(from);
  E* const y = static_cast<E*>(to);
  const std::int64_t x_step = loop.run_stride(0), y_step = loop.run_stride(1);
  host.parallel_for(loop.count, copy_grain_bytes / static_cast<std::int64_t>(sizeof(E)), [&](std::int64_t begin, std::int64_t end) {
    for_each_run(loop, begin, end, [&](const std::array<std::int64_t, 2>& offset, std::int64_t, std::int64_t n) {
      if (y_step == 1) {
        gather(x + offset[0], x_step, y + offset[1], n);
      } else {
        for (std::int64_t i = 0; i < n; ++i) y[offset[1] + i * y_step] = x[offset[0] + i * x_step];
      }
    });
  });
}

}  // namespace

void copy_elements(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size) {
  if (y.count == 0) return;
  const StridedLoop<2> loop = strided_loop_over<2>(y, {&x, &y});
  switch (element_size) {
    case 1:
      return copy_both<std::uint8_t>(host, loop, x.data, y.data);
    case 2:
      return copy_both<std::uint16_t>(host, loop, x.data, y.data);
    case 4:
      return copy_both<std::uint32_t>(host, loop, x.data, y.data);
    case 8:
      return copy_both<std::uint64_t>(host, loop, x.data, y.data);
    default:
      return copy_both<Pair>(host, loop, x.data, y.data);
  }
}

void copy_strided(const sdk::Host& host, const sdk::Operand& x, const sdk::Operand& y, std::size_t element_size) {
  if (y.count == 0) return;
  if (x.data == y.data && x.dense && x.count == y.count) return;
  const StridedLoop<1> loop = strided_loop_over<1>(y, {&x});
  switch (element_size) {
    case 1:
      return copy<std::uint8_t>(host, loop, x.data, y.data);
    case 2:
      return copy<std::uint16_t>(host, loop, x.data, y.data);
    case 4:
      return copy<std::uint32_t>(host, loop, x.data, y.data);
    case 8:
      return copy<std::uint64_t>(host, loop, x.data, y.data);
    default:
      return copy<Pair>(host, loop, x.data, y.data);
  }
}

sdk::Operand permuted(const sdk::Operand& x, const std::int64_t* order, std::int64_t* out_shape, std::int64_t* out_strides) {
  sdk::Operand view = x;
  for (std::uint32_t i = 0; i < x.rank; ++i) {
    out_shape[i] = x.shape[order[i]];
    out_strides[i] = x.strides[order[i]];
  }
  view.shape = out_shape;
  view.strides = out_strides;
  view.dense = false;
  return view;
}

}  // namespace tenon::openblas
