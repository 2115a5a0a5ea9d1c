// SPDX-License-Identifier: Apache-2.0
// The index of the largest or smallest element along an axis.
#include "reduce/arg_best.cuh"
#include "reduce/reduction.cuh"

namespace tenon::cuda {
namespace {

std::uint32_t axes_of(const sdk::Call& call) {
  return 1u << call.attr<tenon_attributes_axis>().axis;
}

/// y = the smallest j for which x[j] beats all others along `axis`.
///
/// Shapes      y is x without the axis, or with 1 in its place (keepdims).
/// Attributes  axis: 0 <= axis < rank, of at least one element unless y is empty.
template <class T, class Beats>
void arg_reduce(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  const T* from = call.input<T>(0);
  const ReductionPlan plan = plan_reduction(x.shape, x.strides, x.rank, axes_of(call), aligned_width<T>(from));
  reduce(stream_of(call), ArgBest<T, Beats>{}, Values<T>{from}, plan, call.output<std::int64_t>(0), call.scratch);
}

template <class T>
void arg_max(const sdk::Call& call) {
  arg_reduce<T, functions::Greater>(call);
}

template <class T>
void arg_min(const sdk::Call& call) {
  arg_reduce<T, functions::Less>(call);
}

std::size_t scratch(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  return scratch_of(x.shape, x.strides, x.rank, axes_of(call), x.dtype);
}
const char* refuse(const sdk::Call& call) {
  const bool empty_axis = call.inputs[0].shape[call.attr<tenon_attributes_axis>().axis] == 0;
  return empty_axis && call.outputs[0].count > 0 ? "the axis is empty; expected at least one element" : nullptr;
}

constexpr sdk::Traits traits{.strided = true, .scratch = scratch, .refuse = refuse};

}  // namespace
TENON_KERNEL_WITH(arg_max, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(arg_min, traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
