// SPDX-License-Identifier: Apache-2.0
// onnx/rules/window.cpp - convolutions, pools and local response normalisation.
#include <fmt/core.h>

#include <numeric>
#include <string_view>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/pools.h"
#include "onnx/rules/windows.h"

namespace tenon::onnx {
namespace {

void conv(Node& node) {
  node.output(0, convolve(node, node.input(0), node.input(1), node.optional_input(2)));
}

void conv_transpose(Node& node) {
  node.output(0, convolve_transposed(node, node.input(0), node.input(1), node.optional_input(2)));
}

/// A convolution of each channel along the length whose windows end at their result, after elements of earlier calls or zeros.
void causal_conv_with_state(Node& node) {
  const Value x = node.input(0), w = node.input(1), past = node.optional_input(3);
  const Shape in = x.shape(), filters = w.shape();
  if (in.rank() != 3 || filters.rank() != 3 || filters[0] != in[1] || filters[1] != 1 || filters[2] < 1) {
    node.fail(fmt::format("expected x (N, C, L) and weights (C, 1, K), got {} and {}", in.str(), filters.str()));
  }
  const std::int64_t kept = filters[2] - 1;
  Value padded = x;
  if (past.present()) {
    const Shape state{in[0], in[1], kept};
    if (past.shape() != state) node.fail(fmt::format("expected a past_state {}, got {}", state.str(), past.shape().str()));
    padded = ops::concat({past, x}, 2);
  } else if (kept > 0) {
    padded = ops::pad(x, {{0, 0}, {0, 0}, {kept, 0}});
  }
  ConvOptions options;
  options.groups = in[1];
  const Value y = ops::conv(padded, w, node.optional_input(2), options);
  const std::string_view activation = node.text("activation", "none");
  if (activation == "silu" || activation == "swish") {
    node.output(0, ops::silu(y));
  } else if (activation == "none") {
    node.output(0, y);
  } else {
    node.fail(fmt::format("expected the activation none, silu or swish, got \"{}\"", activation));
  }
  if (node.needs_output(1)) node.output(1, ops::slice(padded, 2, padded.shape()[2] - kept, padded.shape()[2]));
}

void max_pool_rule(Node& node) {
  if (!node.needs_output(1)) return node.output(0, max_pool(node, node.input(0)));
  const MaxPoolResult result = max_pool_with_indices(node, node.input(0), node.flag("storage_order"));
  node.output(0, result.y);
  node.output(1, result.indices);
}

void average_pool_rule(Node& node) {
  node.output(0, average_pool(node, node.input(0)));
}

/// The dimensions behind the channels. Errors: no channels.
std::vector<std::int64_t> spatial_axes(Node& node) {
  if (node.rank(0) < 2) node.fail(fmt::format("expected x (N, C, d...), got {}", node.shape(0).str()));
  std::vector<std::int64_t> axes(static_cast<std::size_t>(node.rank(0) - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

/// `reduce` over the spatial dimensions, which remain with size 1; x itself if it has none.
template <class Reduce>
void global_pool(Node& node, const Reduce& reduce) {
  const std::vector<std::int64_t> axes = spatial_axes(node);
  node.output(0, axes.empty() ? node.input(0) : reduce(node.input(0), axes));
}

void global_average_pool(Node& node) {
  global_pool(node, [](Value x, const auto& axes) { return ops::reduce_mean(x, axes, true); });
}

void global_max_pool(Node& node) {
  global_pool(node, [](Value x, const auto& axes) { return ops::reduce_max(x, axes, true); });
}

void global_lp_pool(Node& node, double p) {
  if (!(p >= 1)) node.fail(fmt::format("expected p of 1 or more, got {}", p));
  const std::vector<std::int64_t> axes = spatial_axes(node);
  const Value x = node.input(0);
  node.output(0, axes.empty() ? ops::abs(x) : ops::norm(x, p, axes, true));
}

/// The power p of the Lp pools: a float in version 1.
double float_power(Node& node) {
  return node.number("p", 2);
}
double integer_power(Node& node) {
  return static_cast<double>(node.integer("p", 2));
}

void lrn(Node& node) {
  node.output(0,
              ops::lrn(node.input(0), node.integer("size"), node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1)));
}

}  // namespace

const std::vector<Rule>& window_rules() {
  static const std::vector<Rule> rules = {
      {"AveragePool", 1, average_pool_rule},
      {"CausalConvWithState", 27, causal_conv_with_state},
      {"Conv", 1, conv},
      {"ConvTranspose", 1, conv_transpose},
      {"GlobalAveragePool", 1, global_average_pool},
      {"GlobalLpPool", 1, [](Node& n) { global_lp_pool(n, float_power(n)); }},
      {"GlobalLpPool", 2, [](Node& n) { global_lp_pool(n, integer_power(n)); }},
      {"GlobalMaxPool", 1, global_max_pool},
      {"LpPool", 1, [](Node& n) { n.output(0, lp_pool(n, n.input(0), float_power(n))); }},
      {"LpPool", 2, [](Node& n) { n.output(0, lp_pool(n, n.input(0), integer_power(n))); }},
      {"LRN", 1, lrn},
      {"MaxPool", 1, max_pool_rule},
  };
  return rules;
}

}  // namespace tenon::onnx
