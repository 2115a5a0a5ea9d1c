// SPDX-License-Identifier: Apache-2.0
// conv/conv.h - the terms of a convolution, for ops/conv.cl and conv/columns.cl.
#pragma once

#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"
#include "kernel/windows.h"

namespace tenon::opencl {

/// `Groups` of ops/conv.cl: channels of x, filters, and their numbers within a group.
struct Groups {
  std::int64_t channels, filters, group_channels, group_filters;
};

struct ConvTerms {
  Windows windows;
  Groups groups;
  std::int64_t batch;
  bool is_on_cpu;
  std::int64_t columns_limit_bytes;

  /// x (N, C, d...), w (O, C / groups, k...), y (N, O, o...)
  ConvTerms(const sdk::Call& call, const sdk::Operand& x, const sdk::Operand& w, const sdk::Operand& y)
      : ConvTerms(call, call.attr<tenon_attributes_conv>(), x, w, y) {}

 private:
  ConvTerms(const sdk::Call& call, const tenon_attributes_conv& a, const sdk::Operand& x, const sdk::Operand& w, const sdk::Operand& y)
      : windows(windows_of(a, x)),
        groups{x.shape[1], y.shape[1], x.shape[1] / a.groups, y.shape[1] / a.groups},
        batch(x.shape[0]),
        is_on_cpu(static_cast<Device*>(call.device)->description().kind == TENON_DEVICE_CPU),
        columns_limit_bytes(static_cast<Device*>(call.device)->columns_limit_bytes()) {
    set_spatial(windows.kernel, w);
    set_spatial(windows.count, y);
  }
};

}  // namespace tenon::opencl
