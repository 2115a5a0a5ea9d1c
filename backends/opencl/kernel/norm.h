// SPDX-License-Identifier: Apache-2.0
// norm.h - launches of kernel/norm.cl.
#pragma once

#include <initializer_list>

#include <tenon/sdk/kernel.h>

#include "kernel/lanes.h"

namespace tenon::opencl {

/// Lines of n elements as LINE of kernel/norm.cl finds them.
struct Lines {
  std::int64_t count, n, inner;
};

/// A launch over lines whose first arguments are set.
struct LineLaunch {
  Launch launch;
  std::int64_t items;

  LineLaunch(const sdk::Call& call, const char* function, const std::string& options, const Lines& lines)
      : launch(call, sources::norm, function, options) {
    const std::uint32_t width = lanes_for(lines.n);
    items = lines.count * width;
    launch.value(lines.count).value(lines.n).value(lines.inner).value(width);
  }
  LineLaunch& out(const sdk::Call& call, std::initializer_list<std::uint32_t> outputs) {
    for (const std::uint32_t k : outputs) launch.out(call, k);
    return *this;
  }
  LineLaunch& in(const sdk::Call& call, std::initializer_list<std::uint32_t> inputs) {
    for (const std::uint32_t k : inputs) launch.in(call, k);
    return *this;
  }
  template <class... Values>
  void run(Values... values) {
    (launch.value(values), ...);
    launch.over(items);
  }
};

/// The lines from `axis` on of operand x, one after the other.
inline Lines lines_of(const sdk::Operand& x, std::int64_t axis) {
  const auto [outer, n, inner] = sdk::around_axis(x, axis);
  return {outer, n * inner, n * inner};
}
/// The elements of a line of x as lines across it.
inline Lines across(const Lines& lines) {
  return {lines.n, lines.count, 1};
}

}  // namespace tenon::opencl
