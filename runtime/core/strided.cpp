// SPDX-License-Identifier: Apache-2.0
// core/strided.cpp - copies between layouts.
#include "core/strided.h"

#include <array>
#include <cstring>

namespace tenon {
namespace {

/// Copies one innermost row; with the element size known at compile time each copy is one move.
template <std::size_t Size>
void copy_run(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, Size);
}

using CopyRun = void (*)(std::byte*, std::int64_t, const std::byte*, std::int64_t, std::int64_t);

CopyRun copy_run_of(std::int64_t size) {
  switch (size) {
    case 1:
      return copy_run<1>;
    case 2:
      return copy_run<2>;
    case 4:
      return copy_run<4>;
    case 8:
      return copy_run<8>;
    default:
      return copy_run<16>;
  }
}

/// Nested loops, innermost last; at least one.
struct Loops {
  std::array<std::int64_t, Shape::max_rank> size{}, to{}, from{};
  std::size_t rank = 0;
};

/// Merges dimensions that are contiguous in both layouts, so that a dense block is one loop.
Loops merged(const Shape& shape, const std::int64_t* to, const std::int64_t* from) {
  Loops loops;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (loops.rank > 0) {
      const std::size_t last = loops.rank - 1;
      if (loops.to[last] == to[i] * shape[i] && loops.from[last] == from[i] * shape[i]) {
        loops.size[last] *= shape[i];
        loops.to[last] = to[i];
        loops.from[last] = from[i];
        continue;
      }
    }
    loops.size[loops.rank] = shape[i];
    loops.to[loops.rank] = to[i];
    loops.from[loops.rank++] = from[i];
  }
  if (loops.rank == 0) {
    loops.size[0] = loops.to[0] = loops.from[0] = 1;
    loops.rank = 1;
  }
  return loops;
}

}  // namespace

void copy_elements(std::byte* to, const std::int64_t* to_strides, const std::byte* from, const std::int64_t* from_strides,
                   const Shape& shape, std::int64_t size) {
  if (shape.count() == 0) return;
  const Loops loops = merged(shape, to_strides, from_strides);
  const std::size_t outer = loops.rank - 1;
  const std::int64_t run = loops.size[outer];
  const std::int64_t to_step = loops.to[outer] * size, from_step = loops.from[outer] * size;
  const CopyRun copy = copy_run_of(size);
  std::array<std::int64_t, Shape::max_rank> index{};
  std::int64_t to_row = 0, from_row = 0;  // offsets, since the index passes through positions outside the views
  for (std::int64_t left = shape.count() / run; left > 0; --left) {
    if (to_step == size && from_step == size)
      std::memcpy(to + to_row, from + from_row, static_cast<std::size_t>(run * size));
    else
      copy(to + to_row, to_step, from + from_row, from_step, run);
    for (std::size_t d = outer; d-- > 0;) {  // step the outer indices like an odometer
      to_row += loops.to[d] * size;
      from_row += loops.from[d] * size;
      if (++index[d] < loops.size[d]) break;
      to_row -= loops.to[d] * size * loops.size[d];
      from_row -= loops.from[d] * size * loops.size[d];
      index[d] = 0;
    }
  }
}

Reach reach_of(const Shape& shape, const std::int64_t* strides) {
  Reach reach;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const std::int64_t last = (shape[i] - 1) * strides[i];
    (last < 0 ? reach.lowest : reach.highest) += last;
  }
  return reach;
}

}  // namespace tenon
