// SPDX-License-Identifier: Apache-2.0
// level2.h - what the routines of level 2 share: numbers of pieces, memory for partial sums, and the stored part of triangles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cblas.h"
#include "split.h"

namespace tenon::openblas {

/// The stack memory of all pieces together.
inline constexpr std::size_t stack_bytes = 131072;
/// Lines of an off-diagonal panel that are processed at a time if they are read twice: they stay in the cache.
inline constexpr std::int64_t strip = 16;

template <class T>
std::int64_t pieces_of(const Threads& threads, double elements) {
  return piece_count(threads, elements * sizeof(T), smallest_matrix_piece);
}

/// Memory for `count` numbers, not initialised to 0 as an array of std::complex would be.
template <class T, std::int64_t count>
struct Scratch {
  alignas(64) std::byte bytes[static_cast<std::size_t>(count) * sizeof(T)];
  T* data() { return reinterpret_cast<T*>(bytes); }
};

/// The address of a(i, j).
template <class T>
T* element(std::uint32_t layout, T* a, std::int64_t lda, std::int64_t i, std::int64_t j) {
  return layout == TENON_LAYOUT_ROW_MAJOR ? a + i * lda + j : a + j * lda + i;
}

/// Whether a line of the stored triangle, a column of a column-major matrix, begins on the diagonal; else it ends there.
inline bool begins_on_diagonal(std::uint32_t layout, std::uint32_t uplo) {
  return (layout == TENON_LAYOUT_COLUMN_MAJOR) == (uplo == TENON_LOWER);
}

/// Calls panel(row, rows, column, columns) for the off-diagonal part of lines [begin, end), `lines` of them at a time.
template <class Panel>
void for_panels(std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t begin, std::int64_t end, std::int64_t lines,
                const Panel& panel) {
  const bool tail = begins_on_diagonal(layout, uplo);
  const std::int64_t from = tail ? end : 0;
  const std::int64_t others = (tail ? n : begin) - from;
  if (others == 0) return;
  for (std::int64_t line = begin; line < end; line += lines) {
    const std::int64_t count = std::min(lines, end - line);
    layout == TENON_LAYOUT_COLUMN_MAJOR ? panel(from, others, line, count) : panel(line, count, from, others);
  }
}

/// Line j of a packed triangle: its elements have the other index in [from, from + count).
struct PackedLine {
  std::int64_t offset, from, count;
};
inline PackedLine packed_line(bool tail, std::int64_t n, std::int64_t j) {
  return tail ? PackedLine{j * n - j * (j - 1) / 2, j, n - j} : PackedLine{j * (j + 1) / 2, 0, j + 1};
}

}  // namespace tenon::openblas
