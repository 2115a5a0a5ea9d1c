// SPDX-License-Identifier: Apache-2.0
// integer_convolution.cuh - convolution of 8-bit integers: one thread for each result. Images have channels first.
#pragma once

#include <cstdint>

#include "kernel/integer_products.cuh"
#include "kernel/launch.h"
#include "kernel/operands.h"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {

/// One spatial dimension.
struct IntegerAxis {
  std::int64_t size = 1, results = 1, kernel = 1, stride = 1, dilation = 1, before = 0;
};

template <class X, class W>
struct IntegerConvolution {
  IntegerAxis rows, columns;
  std::int64_t count, channels, filters, group_channels, group_filters;
  const X* x;
  const W* w;
  const X* x_zero_point;  ///< NULL: 0
  const W* w_zero_point;
  bool zero_per_filter;
};

/// finish(e, filter, sum) for each element e of the result.
template <class X, class W, class Finish>
__global__ void integer_convolution_kernel(IntegerConvolution<X, W> c, Finish finish) {
  for (std::int64_t e = thread_index(); e < c.count; e += thread_count()) {
    const std::int64_t line = quotient(e, c.columns.results), j = e - line * c.columns.results;
    const std::int64_t plane = quotient(line, c.rows.results), i = line - plane * c.rows.results;
    const std::int64_t n = quotient(plane, c.filters), o = plane - n * c.filters;
    const int x_zero = c.x_zero_point == nullptr ? 0 : *c.x_zero_point;
    const int w_zero = c.w_zero_point == nullptr ? 0 : c.w_zero_point[c.zero_per_filter ? o : 0];
    const X* x = c.x + (n * c.channels + o / c.group_filters * c.group_channels) * c.rows.size * c.columns.size;
    const W* w = c.w + o * c.group_channels * c.rows.kernel * c.columns.kernel;
    std::uint32_t sum = 0;  // wraps
    for (std::int64_t channel = 0; channel < c.group_channels; ++channel, x += c.rows.size * c.columns.size) {
      for (std::int64_t a = 0; a < c.rows.kernel; ++a) {
        const std::int64_t row = i * c.rows.stride + a * c.rows.dilation - c.rows.before;
        for (std::int64_t b = 0; b < c.columns.kernel; ++b, ++w) {
          const std::int64_t column = j * c.columns.stride + b * c.columns.dilation - c.columns.before;
          if (row < 0 || row >= c.rows.size || column < 0 || column >= c.columns.size) continue;
          sum += static_cast<std::uint32_t>((x[row * c.columns.size + column] - x_zero) * (*w - w_zero));
        }
      }
    }
    finish(e, o, sum);
  }
}

inline IntegerAxis axis_of(const sdk::Call& call, const IntegerOperands& at, std::uint32_t i) {
  const auto& a = call.attr<tenon_attributes_conv>();
  return {call.inputs[at.a].shape[i + 2],
          call.outputs[0].shape[i + 2],
          call.inputs[at.b].shape[i + 2],
          a.strides[i],
          a.dilations[i],
          a.pads_before[i]};
}

template <class X, class W, class Finish>
void convolve_integers(const sdk::Call& call, const IntegerOperands& at, const Finish& finish) {
  const sdk::Operand &x = call.inputs[at.a], &w = call.inputs[at.b];
  IntegerConvolution<X, W> c;
  const std::uint32_t last = x.rank - 3;
  if (last == 1) c.rows = axis_of(call, at, 0);
  c.columns = axis_of(call, at, last);
  c.count = call.outputs[0].count;
  c.channels = x.shape[1];
  c.filters = w.shape[0];
  c.group_channels = w.shape[1];
  c.group_filters = w.shape[0] / call.attr<tenon_attributes_conv>().groups;
  c.x = call.input<X>(at.a);
  c.w = call.input<W>(at.b);
  c.x_zero_point = input_or_null<X>(call, at.a_zero_point);
  c.w_zero_point = input_or_null<W>(call, at.b_zero_point);
  c.zero_per_filter = call.has_input(at.b_zero_point) && call.inputs[at.b_zero_point].rank == 1;
  launch_over(call, c.count, integer_convolution_kernel<X, W, Finish>, c, finish);
}

}  // namespace tenon::cuda
