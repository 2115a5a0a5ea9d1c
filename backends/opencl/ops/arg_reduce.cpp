// SPDX-License-Identifier: Apache-2.0
// The index of the largest or smallest element along an axis.
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

template <class T>
void arg_reduce(const sdk::Call& call, const char* function) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const std::int64_t lines = outer * inner;
  if (lines == 0) return;
  Launch(call, sources::arg_reduce, function, types<T>()).value(lines).value(n).value(inner).out(call, 0).in(call, 0).over(lines);
}

template <class T>
void arg_max(const sdk::Call& call) {
  arg_reduce<T>(call, "arg_max");
}

template <class T>
void arg_min(const sdk::Call& call) {
  arg_reduce<T>(call, "arg_min");
}

const char* refuse(const sdk::Call& call) {
  const bool empty_axis = call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis] == 0;
  return empty_axis && call.outputs[0].count > 0 ? "the axis is empty; expected at least one element" : nullptr;
}

constexpr sdk::Traits traits{.refuse = refuse};

}  // namespace
TENON_KERNEL_WITH(arg_max, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(arg_min, traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::opencl
