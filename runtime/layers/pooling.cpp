// SPDX-License-Identifier: Apache-2.0
// Pooling of images (batch, channels, d...), and changes of their size.
#include <fmt/format.h>

#include "layers/image.h"
#include "layers/rule.h"

namespace tenon::layers {
namespace {

template <template <int> class Pooling, int dims>
void read_pool(LayerKeys& keys, Pooling<dims>& out_layer) {
  out_layer.pool_size = read_sizes(keys, "pool_size", dims);
  out_layer.strides = read_sizes(keys, "strides", dims, {});
  out_layer.padding = read_padding(keys, dims);
  out_layer.ceil_mode = keys.get<bool>("ceil_mode", false);
  if constexpr (requires { out_layer.dilation; }) out_layer.dilation = read_sizes(keys, "dilation", dims, {});
  if constexpr (requires { out_layer.count_include_pad; }) {
    out_layer.count_include_pad = keys.get<bool>("count_include_pad", true);
    out_layer.divisor = keys.get_optional<double>("divisor", {.lowest = 0, .above_lowest = true});
  }
  if constexpr (requires { out_layer.p; }) out_layer.p = keys.get<double>("p", out_layer.p, {.lowest = 1});
}

template <template <int> class Pooling, int dims>
Value build_pool(LayerBuilder& builder, const Pooling<dims>& layer, Value x) {
  expect_image(builder, x.shape(), dims);
  const std::vector<std::int64_t> size = kernel_of(builder, layer.pool_size, dims);
  const auto options = options_of<ops::WindowOptions>(builder, layer, dims);
  // An image of height 1 is pooled as a signal.
  const bool line = dims == 1 && x.shape().rank() == 4;
  const Shape shape = x.shape();
  if (line) x = ops::reshape(x, {shape[0], shape[1], shape[3]});
  Value y;
  if constexpr (requires { layer.divisor; }) {
    if (layer.divisor && !(*layer.divisor > 0)) builder.fail(fmt::format("expects a divisor above 0, got {}", *layer.divisor));
    y = layer.divisor ? ops::sum_pool(x, size, options) / *layer.divisor : ops::average_pool(x, size, options, layer.count_include_pad);
  } else if constexpr (requires { layer.p; }) {
    y = ops::lp_pool(x, size, layer.p, options);
  } else {
    y = ops::max_pool(x, size, options);
  }
  if (line) y = ops::reshape(y, {shape[0], shape[1], 1, y.shape()[2]});
  builder.row().flops = per_sample(y.shape()) * product(size);
  return y;
}

template <Value reduce(Value, bool), class L>
Value build_global(LayerBuilder& builder, const L&, Value x) {
  if (x.shape().rank() < 3) builder.fail(fmt::format("expects (batch, channels, d...), got {}", x.shape().str()));
  builder.expect_channels_first(x.shape());
  builder.row().flops = per_sample(x.shape());
  return reduce(x, false);
}

template <class L>
void read_adaptive(LayerKeys& keys, L& out_layer) {
  // The number of dimensions is not known until the model is built: one number stands for all of them.
  const yaml::Value size = keys.require_value("size", "an integer of at least 1, or [height, width]");
  out_layer.size = read_sizes(keys, "size", size.is_scalar() ? 1 : 2);
}

template <Value pool(Value, const std::vector<std::int64_t>&), class L>
Value build_adaptive(LayerBuilder& builder, const L& layer, Value x) {
  const std::size_t rank = x.shape().rank();
  if (rank != 3 && rank != 4) {
    builder.fail(fmt::format("expects (batch, channels, length) or (batch, channels, height, width), got {}", x.shape().str()));
  }
  builder.expect_channels_first(x.shape());
  builder.row().flops = per_sample(x.shape());
  return pool(x, kernel_of(builder, layer.size, rank - 2));
}

void read_upsampling(LayerKeys& keys, UpSampling2D& out_layer) {
  out_layer.size = read_sizes(keys, "size", 2, {2, 2});
  static const std::vector<yaml::Choice<bool>> kinds = {{"nearest", false}, {"bilinear", true}};
  out_layer.bilinear = keys.choice("interpolation", false, kinds);
}

Value build_upsampling(LayerBuilder& builder, const UpSampling2D& layer, Value x) {
  expect_image(builder, x.shape(), 2);
  return ops::upsample(x, kernel_of(builder, layer.size, 2), layer.bilinear ? ops::ResizeMode::linear : ops::ResizeMode::nearest);
}

void read_pad_channels(LayerKeys& keys, PadChannels& out_layer) {
  out_layer.channels = keys.count("channels");
}

Value build_pad_channels(LayerBuilder& builder, const PadChannels& layer, Value x) {
  const Shape shape = x.shape();
  if (shape.rank() < 2 || shape[1] > layer.channels) {
    builder.fail(fmt::format("expects at most {} channels in (batch, channels, ...), got {}", layer.channels, shape.str()));
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(shape.rank(), {0, 0});
  widths[1].second = layer.channels - shape[1];
  return widths[1].second == 0 ? x : ops::pad(x, widths);
}

}  // namespace

TENON_LAYER(MaxPooling1D, "max_pool1d", read_pool, build_pool);
TENON_LAYER(MaxPooling2D, "max_pool2d", read_pool, build_pool);
TENON_LAYER(AveragePooling1D, "average_pool1d", read_pool, build_pool);
TENON_LAYER(AveragePooling2D, "average_pool2d", read_pool, build_pool);
TENON_LAYER(LPPooling1D, "lp_pool1d", read_pool, build_pool);
TENON_LAYER(LPPooling2D, "lp_pool2d", read_pool, build_pool);
TENON_LAYER(GlobalAveragePooling, "global_average_pool", nullptr, build_global<ops::global_average_pool>);
TENON_LAYER(GlobalMaxPooling, "global_max_pool", nullptr, build_global<ops::global_max_pool>);
TENON_LAYER(AdaptiveAveragePooling, "adaptive_average_pool", read_adaptive, build_adaptive<ops::adaptive_average_pool>);
TENON_LAYER(AdaptiveMaxPooling, "adaptive_max_pool", read_adaptive, build_adaptive<ops::adaptive_max_pool>);
TENON_LAYER(UpSampling2D, "upsample2d", read_upsampling, build_upsampling);
TENON_LAYER(PadChannels, "pad_channels", read_pad_channels, build_pad_channels, &PadChannels::channels);

}  // namespace tenon::layers
