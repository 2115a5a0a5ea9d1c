// SPDX-License-Identifier: Apache-2.0
// map.h - y[i] = f(x0[i], x1[i], ...) for every elementwise op. The functions are those of the family's .cl file, op_<stem>.
#pragma once

#include "kernel/launch.h"
#include "kernel/layout.h"

namespace tenon::opencl {

/// The traits of elementwise kernels. Not `elementwise`: groups would be launched piece by piece.
inline constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true};

/// y = f(x...), the first N inputs broadcast to y's shape. `parameters`: the scalars that follow the operands.
/// In place  y may be any x of its shape and type: each work-item reads before it writes.
template <std::size_t N, class... Parameters>
void map(const sdk::Call& call, const Source& source, const char* function, const std::string& options, Parameters... parameters) {
  const Layout layout = layout_of_inputs<N>(call);
  if (layout.count == 0) return;
  Launch launch(call, source, function, options);
  launch.value(layout).out(call, 0);
  for (std::uint32_t k = 0; k < N; ++k) launch.in(call, k);
  (launch.value(parameters), ...);
  launch.over(layout.count);
}

}  // namespace tenon::opencl

/// Registers the op `stem` of N operands for the listed types T, by the kernel op_<stem> in sources::family.
#define TENON_MAP_KERNEL(family, stem, N, ...)              \
  namespace {                                               \
  template <class T>                                        \
  void stem(const sdk::Call& call) {                        \
    map<N>(call, sources::family, "op_" #stem, types<T>()); \
  }                                                         \
  }                                                         \
  TENON_KERNEL_WITH(stem, elementwise_traits, __VA_ARGS__)
