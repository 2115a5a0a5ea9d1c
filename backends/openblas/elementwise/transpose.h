// SPDX-License-Identifier: Apache-2.0
// transpose.h - transposes of matrices of any element type, on the calling thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tenon::openblas {

namespace detail {

/// y = x, by bytes: what is in memory may be of another type than E, of the same size.
template <class E>
inline void copy_element(const E* x, E* y) {
  std::memcpy(y, x, sizeof(E));
}

/// Transposes a tile of `side` x `side` elements of `size` bytes: y[i * y_step + j] = x[j * x_step + i]. Tiles with rows of 16 bytes use
/// registers.
template <std::size_t size>
struct Tile {
  static constexpr std::int64_t side = 1;
  template <class E>
  static void transpose(const E* x, std::int64_t, E* y, std::int64_t) {
    copy_element(x, y);
  }
};

template <>
struct Tile<1> {
  static constexpr std::int64_t side = 16;
  template <class E>
  static void transpose(const E* x, std::int64_t x_step, E* y, std::int64_t y_step) {
    typedef std::uint8_t Row __attribute__((vector_size(16)));
    Row rows[16];
    for (int i = 0; i < 16; ++i) std::memcpy(&rows[i], x + i * x_step, sizeof(Row));
    // Each round rotates the 8 bits of an element's index (row, column) by one: after four, rows and columns have changed places.
    for (int round = 0; round < 4; ++round) {
      Row next[16];
      for (int i = 0; i < 8; ++i) {
        const Row a = rows[i], b = rows[i + 8];
        next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      }
      std::memcpy(rows, next, sizeof rows);
    }
    for (int i = 0; i < 16; ++i) std::memcpy(y + i * y_step, &rows[i], sizeof(Row));
  }
};

template <>
struct Tile<2> {
  static constexpr std::int64_t side = 8;
  template <class E>
  static void transpose(const E* x, std::int64_t x_step, E* y, std::int64_t y_step) {
    typedef std::uint16_t Row __attribute__((vector_size(16)));
    Row rows[8];
    for (int i = 0; i < 8; ++i) std::memcpy(&rows[i], x + i * x_step, sizeof(Row));
    for (int round = 0; round < 3; ++round) {  // as above
      Row next[8];
      for (int i = 0; i < 4; ++i) {
        const Row a = rows[i], b = rows[i + 4];
        next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      }
      std::memcpy(rows, next, sizeof rows);
    }
    for (int i = 0; i < 8; ++i) std::memcpy(y + i * y_step, &rows[i], sizeof(Row));
  }
};

template <>
struct Tile<4> {
  static constexpr std::int64_t side = 4;
  template <class E>
  static void transpose(const E* x, std::int64_t x_step, E* y, std::int64_t y_step) {
    typedef std::uint32_t Row __attribute__((vector_size(16)));
    Row rows[4];
    for (int i = 0; i < 4; ++i) std::memcpy(&rows[i], x + i * x_step, sizeof(Row));
    const Row low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const Row high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const Row low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Row high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const Row out[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                        __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (int i = 0; i < 4; ++i) std::memcpy(y + i * y_step, &out[i], sizeof(Row));
  }
};

template <>
struct Tile<8> {
  static constexpr std::int64_t side = 2;
  template <class E>
  static void transpose(const E* x, std::int64_t x_step, E* y, std::int64_t y_step) {
    typedef std::uint64_t Row __attribute__((vector_size(16)));
    Row rows[2];
    for (int i = 0; i < 2; ++i) std::memcpy(&rows[i], x + i * x_step, sizeof(Row));
    const Row out[2] = {__builtin_shufflevector(rows[0], rows[1], 0, 2), __builtin_shufflevector(rows[0], rows[1], 1, 3)};
    for (int i = 0; i < 2; ++i) std::memcpy(y + i * y_step, &out[i], sizeof(Row));
  }
};

}  // namespace detail

/// y[i * y_step + j] = x[j * x_step + i] for i < rows, j < columns. Bytes are copied: the elements may be of another type than E, of
/// the same size.
template <class E>
void transpose_block(const E* x, std::int64_t x_step, E* y, std::int64_t y_step, std::int64_t rows, std::int64_t columns) {
  static_assert(std::is_trivially_copyable_v<E>);
  using Tile = detail::Tile<sizeof(E)>;
  constexpr std::int64_t side = Tile::side;
  constexpr std::int64_t block = 64;  // columns at a time: their source cache lines stay in L1 while rows advance
  for (std::int64_t begin = 0; begin < columns; begin += block) {
    const std::int64_t end = std::min(begin + block, columns);
    std::int64_t i = 0;
    for (; i + side <= rows; i += side) {
      std::int64_t j = begin;
      for (; j + side <= end; j += side) Tile::transpose(x + j * x_step + i, x_step, y + i * y_step + j, y_step);
      for (; j < end; ++j) {
        for (std::int64_t r = 0; r < side; ++r) detail::copy_element(x + j * x_step + i + r, y + (i + r) * y_step + j);
      }
    }
    for (; i < rows; ++i) {
      for (std::int64_t j = begin; j < end; ++j) detail::copy_element(x + j * x_step + i, y + i * y_step + j);
    }
  }
}

}  // namespace tenon::openblas
