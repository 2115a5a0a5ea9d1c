// SPDX-License-Identifier: Apache-2.0
// sdk_channels_last_testing.h - backends whose kernels of images request channels last, and nets of images for them.
//
// The same graph runs on four backends: "plain", whose image kernels use the graph's order, "last", whose kernels request channels last,
// "either", whose kernels request it if the number of channels is odd, and "mixed", whose kernels may read one image in the graph's order
// and write another with channels last. All values are small integers and products are taken modulo 7, so results have the same bits in
// any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sdk_testing.h"

namespace tenon::sdk_test {

tenon_status query_plain(const tenon_host_info* host, tenon_backend_info* out_info);
tenon_status query_last(const tenon_host_info* host, tenon_backend_info* out_info);
tenon_status query_either(const tenon_host_info* host, tenon_backend_info* out_info);
tenon_status query_mixed(const tenon_host_info* host, tenon_backend_info* out_info);
/// Convolutions of "last" without a Transpose.
tenon_status query_fixed(const tenon_host_info* host, tenon_backend_info* out_info);

tenon_attributes_conv conv_attributes();
tenon_attributes_window window_attributes();
/// Integers from -3 to 3.
Floats some(std::int64_t count, std::uint32_t seed);

/// Builds a net of images, value by value.
struct Images {
  Net net;
  const Shape& shape(std::uint32_t v) const { return net.values[v].shape; }
  std::uint32_t result(Shape shape, bool out) { return out ? net.output(std::move(shape)) : net.internal(std::move(shape)); }

  /// Kernels of size 1 or 1 x 1.
  std::uint32_t conv(std::uint32_t x, std::int64_t channels, bool out = false) {
    Shape weights = shape(x), to = shape(x);
    std::fill(weights.begin() + 2, weights.end(), 1);
    weights[0] = to[1] = channels;
    const auto count = weights[0] * weights[1];
    const auto w = net.constant(weights, some(count, static_cast<std::uint32_t>(net.values.size())));
    const auto y = result(std::move(to), out);
    net.node(TENON_OP_Conv, {x, w}, {y}, conv_attributes());
    return y;
  }
  std::uint32_t max_pool(std::uint32_t x, bool out = false) {
    Shape to = shape(x);
    --to.back();
    const auto y = result(std::move(to), out);
    net.node(TENON_OP_MaxPool, {x}, {y}, window_attributes());
    return y;
  }
  std::uint32_t apply(tenon_op op, std::vector<std::uint32_t> operands, bool out = false) {
    Shape to;
    for (const std::uint32_t v : operands) {
      const Shape& other = shape(v);
      if (other.size() > to.size()) to.insert(to.begin(), other.size() - to.size(), 1);
      for (std::size_t d = 0; d < other.size(); ++d) {
        std::int64_t& size = to[d + to.size() - other.size()];
        size = size == 1 ? other[d] : size;
      }
    }
    const auto y = result(std::move(to), out);
    net.node(op, std::move(operands), {y});
    return y;
  }
};

/// Runs the net on the four backends, which must agree; returns the number of kernels of `counted`.
std::uint32_t check(Net& net, std::uint32_t fusion = TENON_FUSION_FULL, tenon_backend_query_fn counted = query_last);

}  // namespace tenon::sdk_test
