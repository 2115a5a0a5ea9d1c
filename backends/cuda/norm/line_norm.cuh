// SPDX-License-Identifier: Apache-2.0
// line_norm.cuh - normalisation of lines, by mean and variance (centred) or only by the mean square, and its gradient.
//
// A line of up to 8192 elements is read once and held in registers (line_registers.cuh); in the gradient up to 4096, which also accumulates
// the sums over the lines. Longer lines are treated as channels (long_lines.cuh): a reduction of each line, and a pass over all elements.
#pragma once

#include <algorithm>

#include "kernel/dispatch.h"
#include "kernel/operands.h"
#include "norm/line_registers.cuh"
#include "norm/long_lines.cuh"

namespace tenon::cuda {

/// Blocks of a gradient, each of which processes several lines: as many as a large GPU holds at once, on every GPU, since sums depend on
/// their number.
inline std::int64_t gradient_blocks(const RowPlan& plan, std::int64_t lines) {
  const std::int64_t at_once = reduction_threads / plan.lanes;
  return std::min<std::int64_t>((lines + 2 * at_once - 1) / (2 * at_once), plan.elements <= 4 ? 1056 : 264);
}
inline bool in_registers(const RowPlan& plan, int max_elements) {
  return plan.elements > 0 && plan.elements <= max_elements;
}
inline constexpr int max_elements = 32, max_elements_of_gradient = 16;

/// channel_width of operands along lines: lines must divide into packs, since scale and bias are read in packs too.
template <class T, class... Pointer>
int width_along(std::int64_t n, Pointer... x) {
  const int width = channel_width<T>(x...);
  return n % width == 0 ? width : 1;
}
/// True if a thread that holds `elements` elements of a line can read packs.
template <class T, class... Pointer>
bool packs_along(std::int64_t n, int elements, Pointer... x) {
  const int width = std::min(pack_width<T>, elements);
  return is_aligned(16, x...) && n % width == 0;
}

template <class T, bool centred>
void normalise_lines(const sdk::Call& call, const LineNorm<T>& p, std::int64_t lines) {
  using W = Wide<T>;
  Stream& stream = stream_of(call);
  const RowPlan plan = plan_rows(p.n);
  if (in_registers(plan, max_elements)) {
    const int elements = plan.elements <= 4 ? 4 : plan.elements <= 16 ? 16 : 32;
    const auto kernel = elements == 4    ? lines_in_registers<T, centred, 4>
                        : elements == 16 ? lines_in_registers<T, centred, 16>
                                         : lines_in_registers<T, centred, 32>;
    const std::int64_t at_once = reduction_threads / plan.lanes;
    launch(stream, {(lines + at_once - 1) / at_once, reduction_threads}, kernel, p, lines, plan.lanes,
           packs_along<T>(p.n, elements, p.x, p.y, p.scale, p.bias));
    return;
  }
  using Op = std::conditional_t<centred, LineMoments<T>, LineSquares<T>>;
  const Channels at{1, lines, p.n};
  auto* const made = static_cast<ToNormal<W>*>(call.scratch);
  auto* const partials = reinterpret_cast<typename Op::Partial*>(static_cast<std::byte*>(call.scratch) + buffer_bytes<ToNormal<W>>(lines));
  reduce_and_pass(stream, Op{{}, p, made}, {p.x, nullptr}, at, channel_width<T>(p.x), partials, NormaliseLongLines<T>{p, p.y, made},
                  width_along<T>(p.n, p.x, p.y, p.scale, p.bias));
}

template <class T>
std::size_t scratch_of_lines(std::int64_t lines, std::int64_t n) {
  using W = Wide<T>;
  if (in_registers(plan_rows(n), max_elements)) return 0;
  return buffer_bytes<ToNormal<W>>(lines) + buffer_bytes<Distances<W>>(partials_of({1, lines, n}, channel_pack<T>));
}

template <class T, bool centred>
void line_gradients(const sdk::Call& call, const LineNormGrad<T>& p, std::int64_t lines) {
  using W = Wide<T>;
  using Columns = OverLines<T, centred>;
  Stream& stream = stream_of(call);
  const RowPlan plan = plan_rows(p.n);
  const Columns columns{{}, p};
  const bool needs_columns = p.dscale != nullptr || p.dbias != nullptr;
  if (in_registers(plan, max_elements_of_gradient)) {
    const std::int64_t blocks = gradient_blocks(plan, lines);
    const int elements = plan.elements <= 4 ? 4 : 16;
    auto* const partials = needs_columns ? static_cast<TwoSums<W>*>(call.scratch) : nullptr;
    LastBlock last;
    if (needs_columns && blocks > 0) last = last_block(stream, 1, p.n, blocks, reduction_threads);
    launch(stream, {blocks, reduction_threads},
           elements == 4 ? gradients_in_registers<T, centred, 4> : gradients_in_registers<T, centred, 16>, p, lines, plan.lanes,
           packs_along<T>(p.n, elements, p.dy, p.x, p.dx, p.scale, p.epilogue.residual), partials, last);
    if (needs_columns && last.counters == nullptr) combine_channel_splits(stream, columns, partials, p.n, blocks);
    return;
  }
  using Op = LongLineSums<T, centred>;
  const Channels at{1, lines, p.n}, down{lines, p.n, 1};
  auto* const made = static_cast<LineCoefficients<W>*>(call.scratch);
  auto* const partials = reinterpret_cast<TwoSums<W>*>(static_cast<std::byte*>(call.scratch) + buffer_bytes<LineCoefficients<W>>(lines));
  reduce_and_pass(stream, Op{{}, p, made}, {p.dy, p.x}, at, channel_width<T>(p.dy, p.x, p.scale), partials,
                  LongLineGradients<T>{p, p.dx, made}, width_along<T>(p.n, p.dy, p.x, p.dx, p.scale, p.epilogue.residual));
  if (needs_columns) reduce_channels(stream, columns, {p.dy, p.x}, down, channel_width<T>(p.dy, p.x), partials);
}

template <class T>
std::size_t scratch_of_gradients(std::int64_t lines, std::int64_t n) {
  using W = Wide<T>;
  const RowPlan plan = plan_rows(n);
  if (in_registers(plan, max_elements_of_gradient)) return buffer_bytes<TwoSums<W>>(gradient_blocks(plan, lines) * n);
  const std::int64_t along = partials_of({1, lines, n}, channel_pack<T>), down = partials_of({lines, n, 1}, channel_pack<T>);
  return buffer_bytes<LineCoefficients<W>>(lines) + buffer_bytes<TwoSums<W>>(std::max(along, down));
}

/// The lines of operand x of a call, as channels.
inline Channels lines_of(const sdk::Call& call, std::uint32_t x) {
  return lines_from(call.inputs[x], call.attr<tenon_attributes_layer_norm>().axis);
}
template <class T>
Wide<T> epsilon_of(const sdk::Call& call) {
  return static_cast<Wide<T>>(call.attr<tenon_attributes_layer_norm>().epsilon);
}
inline std::size_t line_norm_scratch(const sdk::Call& call) {
  const Channels lines = lines_of(call, 0);
  return dispatch_floating(call.inputs[0].dtype, [&]<class T>() { return scratch_of_lines<T>(lines.count, lines.inner); });
}
inline std::size_t line_norm_grad_scratch(const sdk::Call& call) {
  const Channels lines = lines_of(call, 1);
  return dispatch_floating(call.inputs[1].dtype, [&]<class T>() { return scratch_of_gradients<T>(lines.count, lines.inner); });
}
inline constexpr sdk::Traits line_norm_traits{.in_place = true, .scratch = line_norm_scratch};
inline constexpr sdk::Traits line_norm_grad_traits{.epilogue = true, .residual = true, .activations = 0, .scratch = line_norm_grad_scratch};

}  // namespace tenon::cuda
