// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_depthwise.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cstring>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "quantize/integer_depthwise_layout.h"
#include "quantize/integer_depthwise_vnni.h"
#include "simd/simd.h"
#include "simd/x86.h"
#include "workers.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// sums[c] += (x[c] - zero_point) w[c], in a plain loop, which the compiler vectorises for each instruction set.
template <class X>
void add_tap(const X* x, std::int16_t zero_point, const std::int16_t* w, std::int64_t channels, std::int32_t* sums) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto difference = static_cast<std::int16_t>(x[c] - zero_point);
    sums[c] += std::int32_t{difference} * std::int32_t{w[c]};
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Multiply-adds worth a thread.
constexpr std::int64_t depthwise_grain = 128 * 1024;

/// a - b modulo 2^32
[[maybe_unused]] std::int32_t difference(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// The parts of the scratch memory.
struct Scratch {
  std::int16_t* w = nullptr;  ///< the weights less their zero points
  std::int32_t *sums = nullptr, *column_sums = nullptr, *bias = nullptr, *ordered_bias = nullptr;
  float *factor = nullptr, *ordered_factor = nullptr;
  std::uint8_t* padding = nullptr;
  const std::uint8_t** pixels = nullptr;
  std::int64_t pixel_count = 0, sum_count = 0;  ///< of each worker

  Scratch(sdk::ScratchArena& arena, const ConvGeometry& g, const IntegerOperands& at, std::int64_t workers) {
    w = arena.allocate<std::int16_t>(g.weights());
    if (!at.requantised) return;
    const std::int64_t whole = chunks_of(g) * chunk_channels;
    sum_count = sdk::round_up(g.channels, 64);
    pixel_count = g.kernel_height * line_groups(g) * integer_group;
    sums = arena.allocate<std::int32_t>(workers * sum_count);
    column_sums = arena.allocate<std::int32_t>(whole);
    bias = arena.allocate<std::int32_t>(whole);
    ordered_bias = arena.allocate<std::int32_t>(whole);
    factor = arena.allocate<float>(whole);
    ordered_factor = arena.allocate<float>(whole);
    padding = arena.allocate<std::uint8_t>(whole);
    pixels = arena.allocate<const std::uint8_t*>(workers * pixel_count);
  }
};

/// The weights less their zero points, and their sums for each channel.
void centre_weights(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at, const std::int16_t* stored,
                    std::int16_t* out_w, std::int32_t* out_sums) {
  for (std::int64_t c = 0; c < g.channels; ++c) {
    const auto zero_point = static_cast<std::int16_t>(zero_point_at(call, at.b_zero_point, c));
    std::int32_t sum = 0;
    for (std::int64_t t = 0; t < g.taps(); ++t) {
      const auto weight = static_cast<std::int16_t>(stored[t * g.channels + c] - zero_point);
      out_w[t * g.channels + c] = weight;
      sum += weight;
    }
    if (out_sums != nullptr) out_sums[c] = sum;
  }
}

/// The sums of one pixel of y.
void sum_pixel(const DepthwiseLine& from, std::int64_t column, bool x_signed, std::int16_t zero_point, const std::int16_t* w,
               std::int32_t* sums) {
  const ConvGeometry& g = from.g;
  std::memset(sums, 0, static_cast<std::size_t>(g.channels) * sizeof *sums);
  for (std::int64_t a = 0; a < g.kernel_height; ++a) {
    for (std::int64_t b = 0; b < g.kernel_width; ++b) {
      const std::uint8_t* const x = from.pixel(column, a, b);
      if (x == from.padding) continue;
      const std::int16_t* const tap = w + (a * g.kernel_width + b) * g.channels;
      if (x_signed) {
        TENON_DISPATCH(add_tap<std::int8_t>)(reinterpret_cast<const std::int8_t*>(x), zero_point, tap, g.channels, sums);
      } else {
        TENON_DISPATCH(add_tap<std::uint8_t>)(x, zero_point, tap, g.channels, sums);
      }
    }
  }
}

}  // namespace

std::size_t integer_depthwise_weight_bytes(const ConvGeometry& g) {
  return static_cast<std::size_t>(sums_offset(g) + g.channels * static_cast<std::int64_t>(sizeof(std::int32_t)));
}

void pack_integer_depthwise(const ConvGeometry& g, const std::uint8_t* w, tenon_dtype dtype, void* out_packed) {
  auto* const out = static_cast<std::int16_t*>(out_packed);
  for (std::int64_t c = 0; c < g.channels; ++c) {
    for (std::int64_t t = 0; t < g.taps(); ++t) {
      const std::uint8_t element = w[c * g.taps() + t];
      out[t * g.channels + c] = dtype == TENON_DTYPE_I8 ? std::int16_t{static_cast<std::int8_t>(element)} : std::int16_t{element};
    }
  }
  auto* const sums = reinterpret_cast<std::int32_t*>(static_cast<char*>(out_packed) + sums_offset(g));
  std::fill_n(sums, g.channels, 0);
  for (std::int64_t i = 0; i < g.weights(); ++i) sums[i % g.channels] += out[i];
  std::uint8_t* const groups = static_cast<std::uint8_t*>(out_packed) + first_part_bytes(g);
  const std::int64_t taps = line_groups(g) * integer_group, copy_bytes = chunks_of(g) * chunk_bytes(g);
  for (std::int64_t shift = 0; shift < (g.kernel_width < integer_group ? 2 : 1); ++shift) {
    for (std::int64_t chunk = 0; chunk < chunks_of(g); ++chunk) {
      std::uint8_t* to = groups + shift * copy_bytes + chunk * chunk_bytes(g);
      for (std::int64_t a = 0; a < g.kernel_height; ++a) {
        for (std::int64_t first = 0; first < taps; first += integer_group) {
          for (std::int64_t i = 0; i < chunk_channels; ++i) {
            const std::int64_t c = chunk * chunk_channels + channel_at(g, i);
            for (std::int64_t t = 0; t < integer_group; ++t) {
              const std::int64_t b = first + t - shift;
              *to++ = c < g.channels && b >= 0 && b < g.kernel_width ? w[c * g.taps() + a * g.kernel_width + b] : std::uint8_t{0};
            }
          }
        }
      }
    }
  }
}

std::size_t integer_depthwise_scratch(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at) {
  sdk::ScratchArena arena(nullptr);
  Scratch(arena, g, at, worker_count(call.host, g.images * g.out_height));
  return arena.required_bytes();
}

void integer_depthwise(const ConvGeometry& g, const sdk::Call& call, const IntegerOperands& at, const void* packed, void* scratch) {
  const std::int64_t lines = g.images * g.out_height;
  sdk::ScratchArena arena(scratch);
  const std::int64_t workers = worker_count(call.host, lines);
  const Scratch memory(arena, g, at, workers);
  const bool x_signed = call.inputs[at.a].dtype == TENON_DTYPE_I8;
  const std::int32_t x_zero_point = zero_point_at(call, at.a_zero_point, 0);
  const auto* const stored = static_cast<const std::int16_t*>(packed);
  const std::uint8_t none = 0;  // its address marks pixels outside of x
  const std::uint8_t* const x = call.input<std::uint8_t>(at.a);
  const std::int64_t work = std::max<std::int64_t>(1, g.out_width * g.channels * g.taps());
  const std::int64_t grain = std::max<std::int64_t>(1, depthwise_grain / work);

  if (!at.requantised) {
    centre_weights(g, call, at, stored, memory.w, nullptr);
    call.host.parallel_for(lines, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const DepthwiseLine from{g, x, &none, i / g.out_height, i % g.out_height};
        for (std::int64_t column = 0; column < g.out_width; ++column) {
          std::int32_t* const y = call.output<std::int32_t>(0) + (i * g.out_width + column) * g.channels;
          sum_pixel(from, column, x_signed, static_cast<std::int16_t>(x_zero_point), memory.w, y);
        }
      }
    });
    return;
  }

  // vpdpbusd sums products with x, or with x + 128 of an i8 x; the other sums are those of x less its zero point.
  const bool by_groups = has_avx512_vnni() && has_symmetric_weights(call, at);
  const auto* column_sums = reinterpret_cast<const std::int32_t*>(static_cast<const char*>(packed) + sums_offset(g));
  if (!by_groups) {
    centre_weights(g, call, at, stored, memory.w, memory.column_sums);
    column_sums = memory.column_sums;
  }
  IntegerRequantisation requantisation = requantisation_of(call);
  fill_requantisation(call, at, 0, g.channels, column_sums, memory.bias, memory.factor);
  std::uint8_t* const y = call.output<std::uint8_t>(0);
#if TENON_X86
  if (by_groups) {
    for (std::int64_t i = 0; i < chunks_of(g) * chunk_channels; ++i) {
      const std::int64_t c = i / chunk_channels * chunk_channels + channel_at(g, i % chunk_channels);
      const bool exists = c < g.channels;
      memory.ordered_bias[i] = exists ? difference(memory.bias[c], x_signed ? 128 * column_sums[c] : 0) : 0;
      memory.ordered_factor[i] = exists ? memory.factor[c] : 0;
    }
    std::memset(memory.padding, x_zero_point, static_cast<std::size_t>(g.channels));
    const auto* const weights = static_cast<const std::int8_t*>(packed) + first_part_bytes(g);
    requantisation.bias = memory.ordered_bias;
    requantisation.factor = memory.ordered_factor;
    const vnni::OrderedRequantisation ordered(requantisation, chunks_of(g));
    for_each_task(call.host, sdk::ceil_div(lines, grain), [&](std::int64_t task, std::int64_t worker) {
      const std::uint8_t** const pixels = memory.pixels + worker * memory.pixel_count;
      for (std::int64_t i = task * grain; i < std::min(lines, (task + 1) * grain); ++i) {
        const DepthwiseLine from{g, x, memory.padding, i / g.out_height, i % g.out_height};
        vnni::depthwise_line(from, x_signed, weights, ordered, pixels, y + i * g.out_width * g.channels);
      }
    });
    return;
  }
#endif
  // The zero point of x is subtracted before the products, so the bias is the op's.
  for (std::int64_t c = 0; c < g.channels; ++c) memory.bias[c] = call.has_input(8) ? call.input<std::int32_t>(8)[c] : 0;
  requantisation.bias = memory.bias;
  requantisation.factor = memory.factor;
  for_each_task(call.host, sdk::ceil_div(lines, grain), [&](std::int64_t task, std::int64_t worker) {
    IntegerRequantisation own = requantisation;
    std::int32_t* const sums = memory.sums + worker * memory.sum_count;
    for (std::int64_t i = task * grain; i < std::min(lines, (task + 1) * grain); ++i) {
      const DepthwiseLine from{g, x, &none, i / g.out_height, i % g.out_height};
      for (std::int64_t column = 0; column < g.out_width; ++column) {
        sum_pixel(from, column, x_signed, static_cast<std::int16_t>(x_zero_point), memory.w, sums);
        own.y = y + (i * g.out_width + column) * g.channels;
        requantise_row(own, sums, g.channels);
      }
    }
  });
}

}  // namespace tenon::openblas
#endif
