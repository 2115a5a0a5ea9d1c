// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_direct_forms.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "conv/conv_bands.h"
#include "gemm/panels.h"

namespace tenon::openblas {
namespace {

/// The taps of one phase: the i-th is tap first + i step, which reads at offset - i tap_step.
struct PhaseTaps {
  std::int64_t first = 0, step = 1, count = 0;
};

/// The taps k with k dilation = remainder, modulo the stride.
PhaseTaps taps_of(std::int64_t remainder, std::int64_t taps, std::int64_t dilation, std::int64_t stride) {
  PhaseTaps found;
  found.step = stride / std::gcd(dilation, stride);
  while (found.first < taps && found.first * dilation % stride != remainder) ++found.first;
  if (found.first < taps) found.count = (taps - found.first + found.step - 1) / found.step;
  return found;
}

/// The positions i = o stride + k dilation - pad of dx with (i + pad) mod stride = remainder.
ConvAxis input_grad_axis(std::int64_t remainder, std::int64_t size, std::int64_t out_size, std::int64_t taps, std::int64_t stride,
                         std::int64_t dilation, std::int64_t pad) {
  const PhaseTaps phase = taps_of(remainder, taps, dilation, stride);
  ConvAxis axis;
  axis.first = ((remainder - pad) % stride + stride) % stride;
  axis.step = stride;
  axis.results = axis.first < size ? (size - axis.first + stride - 1) / stride : 0;
  axis.size = out_size;
  axis.taps = phase.count;
  // o = (first + i stride + pad - k dilation) / stride, which is exact
  axis.offset = (axis.first + pad - phase.first * dilation) / stride;
  axis.tap_step = -(phase.step * dilation / stride);
  return axis;
}

}  // namespace

DirectConv forward_conv(const ConvGeometry& g) {
  DirectConv conv;
  conv.images = g.images;
  conv.groups = g.groups;
  conv.channels = g.channels;
  conv.out_height = g.out_height;
  conv.out_width = g.out_width;
  conv.out_channels = g.out_channels;
  conv.high = {g.out_height, 0, 1, g.height, g.stride_height, -g.pad_top, g.kernel_height, g.dilation_height};
  conv.wide = {g.out_width, 0, 1, g.width, g.stride_width, -g.pad_left, g.kernel_width, g.dilation_width};
  return conv;
}

std::int64_t input_grad_phases(const ConvGeometry& g) {
  return g.stride_height * g.stride_width;
}

DirectConv input_grad_conv(const ConvGeometry& g, std::int64_t phase) {
  DirectConv conv;
  conv.images = g.images;
  conv.groups = g.groups;
  conv.channels = g.out_channels;
  conv.out_height = g.height;
  conv.out_width = g.width;
  conv.out_channels = g.channels;
  conv.high =
      input_grad_axis(phase / g.stride_width, g.height, g.out_height, g.kernel_height, g.stride_height, g.dilation_height, g.pad_top);
  conv.wide = input_grad_axis(phase % g.stride_width, g.width, g.out_width, g.kernel_width, g.stride_width, g.dilation_width, g.pad_left);
  return conv;
}

template <class T>
std::int64_t input_grad_elements(const ConvGeometry& g) {
  std::int64_t elements = 0;
  for (std::int64_t phase = 0; phase < input_grad_phases(g); ++phase) elements += direct_panel_elements<T>(input_grad_conv(g, phase));
  return elements;
}

template <class T>
PanelSource<T> forward_panels(const ConvGeometry& g, const T* w, std::int64_t group) {
  const std::int64_t k = g.k();
  PanelSource<T> from;
  from.data = w + group * g.group_out_channels() * k;
  from.taps_high = g.kernel_height;
  from.taps_wide = g.kernel_width;
  from.tap_step_high = g.kernel_width;
  from.tap_step_wide = 1;
  from.inner = g.group_channels();
  from.inner_step = g.taps();
  from.columns = g.group_out_channels();
  from.column_step = k;
  return from;
}

namespace {

template <class T>
PanelSource<T> input_grad_panels(const ConvGeometry& g, std::int64_t phase, const T* w, std::int64_t group) {
  const PhaseTaps high = taps_of(phase / g.stride_width, g.kernel_height, g.dilation_height, g.stride_height);
  const PhaseTaps wide = taps_of(phase % g.stride_width, g.kernel_width, g.dilation_width, g.stride_width);
  const std::int64_t k = g.k();
  PanelSource<T> from;
  from.data = w + group * g.group_out_channels() * k + high.first * g.kernel_width + wide.first;
  from.taps_high = high.count;
  from.taps_wide = wide.count;
  from.tap_step_high = high.step * g.kernel_width;
  from.tap_step_wide = wide.step;
  from.inner = g.group_out_channels();
  from.inner_step = k;
  from.columns = g.group_channels();
  from.column_step = g.taps();
  return from;
}

/// Weights worth a thread for packing: about 20 us.
constexpr std::int64_t pack_grain = 16 * 1024;

/// Packs the panels of all groups; source(group) describes the weights of a group.
template <class T, class Source>
void pack_groups(const DirectConv& conv, const sdk::Host& host, const Source& source, T* out_packed) {
  const std::int64_t elements = panel_elements<T>(conv.k(), conv.group_columns());
  const std::int64_t panels = panel_count<T>(conv.group_columns());
  const std::int64_t panel = std::max<std::int64_t>(1, conv.k() * panel_width<T>);
  const bool in_bands = std::is_same_v<T, sdk::BFloat16> && reads_bands(conv, host);
  host.parallel_for(conv.groups * panels, std::max<std::int64_t>(1, pack_grain / panel), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      PanelSource<T> from = source(i / panels);
      if (in_bands) from.inner_block = band_channels;
      pack_panel(from, i % panels, out_packed + i / panels * elements);
    }
  });
}

}  // namespace

template <class T>
void pack_forward(const ConvGeometry& g, const sdk::Host& host, const T* w, T* out_packed) {
  pack_groups(
      forward_conv(g), host, [&](std::int64_t group) { return forward_panels(g, w, group); }, out_packed);
}

template <class T>
void pack_input_grad(const ConvGeometry& g, const sdk::Host& host, const T* w, T* out_packed) {
  for (std::int64_t phase = 0; phase < input_grad_phases(g); ++phase) {
    const DirectConv conv = input_grad_conv(g, phase);
    pack_groups(
        conv, host, [&](std::int64_t group) { return input_grad_panels(g, phase, w, group); }, out_packed);
    out_packed += direct_panel_elements<T>(conv);
  }
}

std::string forward_form(const ConvGeometry& g, const sdk::Host& host) {
  return (reads_bands(forward_conv(g), host) ? "direct or bands, groups " : "direct, groups ") + std::to_string(g.groups);
}

std::string input_grad_form(const ConvGeometry& g, const sdk::Host& host) {
  const auto pair = [](std::int64_t a, std::int64_t b) { return std::to_string(a) + "," + std::to_string(b); };
  std::string form = "direct, groups " + std::to_string(g.groups) + ", strides " + pair(g.stride_height, g.stride_width) + ", dilations " +
                     pair(g.dilation_height, g.dilation_width);
  for (std::int64_t phase = 0; phase < input_grad_phases(g); ++phase) {
    if (reads_bands(input_grad_conv(g, phase), host)) form += ", bands in phase " + std::to_string(phase);
  }
  return form;
}

template PanelSource<std::uint8_t> forward_panels(const ConvGeometry&, const std::uint8_t*, std::int64_t);
template std::int64_t input_grad_elements<sdk::BFloat16>(const ConvGeometry&);
template void pack_forward(const ConvGeometry&, const sdk::Host&, const sdk::BFloat16*, sdk::BFloat16*);
template void pack_input_grad(const ConvGeometry&, const sdk::Host&, const sdk::BFloat16*, sdk::BFloat16*);
template std::int64_t input_grad_elements<float>(const ConvGeometry&);
template void pack_forward(const ConvGeometry&, const sdk::Host&, const float*, float*);
template void pack_input_grad(const ConvGeometry&, const sdk::Host&, const float*, float*);
template std::int64_t input_grad_elements<double>(const ConvGeometry&);
template void pack_forward(const ConvGeometry&, const sdk::Host&, const double*, double*);
template void pack_input_grad(const ConvGeometry&, const sdk::Host&, const double*, double*);

}  // namespace tenon::openblas
