// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_depthwise.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <tenon/sdk/rounding.h>
#include <tenon/sdk/scratch_arena.h>

#include "simd/simd.h"
#include "simd/unroll.h"
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

// The packed weights have three parts. The first is (taps, channels) in i16, for any processor and any zero points. The second is for
// vpdpbusd: per 64 channels, a chunk, and for each line of the kernel, groups of four taps, of which the last has zeros. Four vectors of 16
// channels are a group; the channels of a vector are those that unpacking bytes within lanes of 128 bits gives. A kernel of up to 3 columns
// is stored a second time, one column further right: the pixels of one group of taps then give the sums of two neighbouring pixels of y.
// The third has the sums of the weights of each channel.
constexpr std::int64_t chunk_channels = 64, group_bytes = integer_group * chunk_channels;

std::int64_t chunks_of(const ConvGeometry& g) {
  return sdk::ceil_div(g.channels, chunk_channels);
}
std::int64_t line_groups(const ConvGeometry& g) {
  return sdk::ceil_div(g.kernel_width, integer_group);
}
/// Bytes of one chunk, once.
std::int64_t chunk_bytes(const ConvGeometry& g) {
  return g.kernel_height * line_groups(g) * group_bytes;
}
std::int64_t first_part_bytes(const ConvGeometry& g) {
  return sdk::round_up(g.weights() * static_cast<std::int64_t>(sizeof(std::int16_t)), 64);
}

/// Where the sums of the weights of each channel follow, in i32.
std::int64_t sums_offset(const ConvGeometry& g) {
  const std::int64_t copies = g.kernel_width < integer_group ? 2 : 1;
  return sdk::round_up(first_part_bytes(g) + copies * chunks_of(g) * chunk_bytes(g), 64);
}

/// Images of at most this number of channels have two pixels in a chunk: its second half repeats the channels of the first.
constexpr std::int64_t narrow_channels = 32;

/// The channel in element i of the four vectors of a chunk: lane l of vector v has channels 16 l + 4 v to 16 l + 4 v + 3.
std::int64_t channel_at(const ConvGeometry& g, std::int64_t i) {
  const std::int64_t v = i / 16, lane = i / 4 % 4;
  const std::int64_t channel = 16 * lane + 4 * v + i % 4;
  return g.channels <= narrow_channels ? channel % narrow_channels : channel;
}

/// What a line of y is made of.
struct Lines {
  const ConvGeometry& g;
  const std::uint8_t* x;
  const std::uint8_t* padding;  ///< zero points of all channels
  std::int64_t image, line;     ///< of y

  /// The pixel of x that tap (a, b) of the kernel meets for this column of y.
  const std::uint8_t* pixel(std::int64_t column, std::int64_t a, std::int64_t b) const {
    const std::int64_t high = line * g.stride_height - g.pad_top + a * g.dilation_height;
    const std::int64_t wide = column * g.stride_width - g.pad_left + b * g.dilation_width;
    if (high < 0 || high >= g.height || wide < 0 || wide >= g.width) return padding;
    return x + ((image * g.height + high) * g.width + wide) * g.channels;
  }
};

#if TENON_X86

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace vnni {

/// The lists of a requantisation in the order of channel_at, and how bytes are made of the sums, which begin with the bias.
struct Requantisation {
  const std::int32_t* bias;  ///< of whole chunks
  const float* factor;
  __m512i zero_point;
  bool is_signed;
  bool bounds;  ///< some factor may take a sum beyond i32

  Requantisation(const IntegerRequantisation& by, std::int64_t chunks)
      : bias(by.bias),
        factor(by.factor),
        zero_point(_mm512_set1_epi16(static_cast<short>(by.zero_point))),
        is_signed(by.low < 0),
        bounds(!std::all_of(factor, factor + chunks * chunk_channels, [](float f) { return std::abs(f) < 0.5F; })) {}

  __m512i operator()(__m512i sum, std::int64_t at) const {
    __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(factor + at));
    if (bounds) scaled = _mm512_min_ps(scaled, _mm512_set1_ps(0x1p30F));
    return _mm512_cvtps_epi32(scaled);
  }
  /// The bytes of 64 channels in order: packing, which saturates, within lanes undoes unpacking.
  __m512i operator()(const __m512i (&sums)[4], std::int64_t chunk) const {
    const std::int64_t at = chunk * chunk_channels;
    const __m512i low_half = _mm512_packs_epi32((*this)(sums[0], at), (*this)(sums[1], at + 16));
    const __m512i high_half = _mm512_packs_epi32((*this)(sums[2], at + 32), (*this)(sums[3], at + 48));
    const __m512i low = _mm512_adds_epi16(low_half, zero_point), high = _mm512_adds_epi16(high_half, zero_point);
    return is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  }
  /// The biases of the sums of a chunk.
  void begin(__m512i (&sums)[4], std::int64_t chunk) const {
    for (int v = 0; v < 4; ++v) sums[v] = _mm512_loadu_si512(bias + chunk * chunk_channels + 16 * v);
  }
};

/// The bytes of four pixels of x as four vectors of 16 channels.
inline void interleave(const __m512i (&x)[4], __m512i (&out)[4]) {
  const __m512i low_a = _mm512_unpacklo_epi8(x[0], x[1]), high_a = _mm512_unpackhi_epi8(x[0], x[1]);
  const __m512i low_b = _mm512_unpacklo_epi8(x[2], x[3]), high_b = _mm512_unpackhi_epi8(x[2], x[3]);
  out[0] = _mm512_unpacklo_epi16(low_a, low_b);
  out[1] = _mm512_unpackhi_epi16(low_a, low_b);
  out[2] = _mm512_unpacklo_epi16(high_a, high_b);
  out[3] = _mm512_unpackhi_epi16(high_a, high_b);
}

/// Adds the products of four neighbouring pixels of x with weights of 64 channels to the sums of one pixel of y, or of two, whose weights
/// are `shifted` bytes further on.
template <bool x_signed, int count>
[[gnu::always_inline]] inline void add_products(__m512i (&x)[4], const std::int8_t* weights, std::int64_t shifted,
                                                __m512i (&sums)[count][4]) {
  __m512i four[4];
  if constexpr (x_signed) {
    for (__m512i& pixel : x) pixel = _mm512_xor_si512(pixel, _mm512_set1_epi8(static_cast<char>(0x80)));
  }
  interleave(x, four);
  TENON_UNROLL
  for (int v = 0; v < 4; ++v) {
    TENON_UNROLL
    for (int p = 0; p < count; ++p)
      sums[p][v] = _mm512_dpbusd_epi32(sums[p][v], four[v], _mm512_loadu_si512(weights + p * shifted + 64 * v));
  }
}

/// One pixel of y, or two neighbours, in 64 channels. `pixels` are those of x by line of the kernel and tap, 4 groups a line; weights those
/// of the chunk.
template <bool x_signed, int count>
inline void pixels_of_chunk(const ConvGeometry& g, const std::uint8_t* const* pixels, std::int64_t channel, __mmask64 mask,
                            const std::int8_t* weights, std::int64_t shifted, const Requantisation& requantised, std::uint8_t* y) {
  __m512i sums[count][4];
  for (auto& pixel : sums) requantised.begin(pixel, channel / chunk_channels);
  const std::int64_t groups = g.kernel_height * line_groups(g);
  for (std::int64_t group = 0; group < groups; ++group, pixels += integer_group, weights += group_bytes) {
    __m512i x[4];
    for (int i = 0; i < 4; ++i) x[i] = _mm512_maskz_loadu_epi8(mask, pixels[i] + channel);
    add_products<x_signed, count>(x, weights, shifted, sums);
  }
  for (int p = 0; p < count; ++p) {
    _mm512_mask_storeu_epi8(y + p * g.channels + channel, mask, requantised(sums[p], channel / chunk_channels));
  }
}

/// The same for a kernel of 3 x 3 whose taps are all inside of x: those of its lines begin at `at` and line_step apart, and are tap_step
/// apart.
template <bool x_signed, int count>
inline void inner_pixels_of_chunk(const ConvGeometry& g, const std::uint8_t* at, std::int64_t line_step, std::int64_t tap_step,
                                  std::int64_t channel, __mmask64 mask, const std::int8_t* weights, std::int64_t shifted,
                                  const Requantisation& requantised, std::uint8_t* y) {
  __m512i sums[count][4];
  TENON_UNROLL
  for (int p = 0; p < count; ++p) requantised.begin(sums[p], channel / chunk_channels);
  TENON_UNROLL
  for (int a = 0; a < 3; ++a) {
    const std::uint8_t* const from = at + a * line_step;
    // A single pixel of y has no fourth tap, whose weight is 0.
    __m512i x[4] = {_mm512_maskz_loadu_epi8(mask, from), _mm512_maskz_loadu_epi8(mask, from + tap_step),
                    _mm512_maskz_loadu_epi8(mask, from + 2 * tap_step), _mm512_maskz_loadu_epi8(mask, from + (count + 1) * tap_step)};
    add_products<x_signed, count>(x, weights + a * group_bytes, shifted, sums);
  }
  TENON_UNROLL
  for (int p = 0; p < count; ++p) {
    _mm512_mask_storeu_epi8(y + p * g.channels + channel, mask, requantised(sums[p], channel / chunk_channels));
  }
}

/// Four neighbouring pixels of y in up to 32 channels, of a kernel of 3 columns: the pixels from `at` on, in lines `line_step` apart.
template <bool x_signed>
inline void four_narrow_pixels(const ConvGeometry& g, const std::uint8_t* at, std::int64_t line_step, __mmask32 mask,
                               const std::int8_t* weights, std::int64_t shifted, const Requantisation& requantised, std::uint8_t* y) {
  __m512i sums[2][4];
  for (auto& pixel : sums) requantised.begin(pixel, 0);
  for (std::int64_t a = 0; a < g.kernel_height; ++a, at += line_step, weights += group_bytes) {
    __m256i halves[6];
    for (int i = 0; i < 6; ++i) halves[i] = _mm256_maskz_loadu_epi8(mask, at + i * g.channels);
    __m512i x[4];
    for (int i = 0; i < 4; ++i) x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(halves[i]), halves[i + 2], 1);
    add_products<x_signed, 2>(x, weights, shifted, sums);
  }
  for (int p = 0; p < 2; ++p) {
    const __m512i bytes = requantised(sums[p], 0);
    _mm256_mask_storeu_epi8(y + p * g.channels, mask, _mm512_castsi512_si256(bytes));
    _mm256_mask_storeu_epi8(y + (p + 2) * g.channels, mask, _mm512_extracti64x4_epi64(bytes, 1));
  }
}

/// One line of y, at by.y; the lists of `by` are in the order of channel_at. `pixels` is memory for the pixels of one position.
template <bool x_signed>
void line(const Lines& from, const std::int8_t* weights, const IntegerRequantisation& by, const std::uint8_t** pixels) {
  const ConvGeometry& g = from.g;
  const Requantisation requantised(by, chunks_of(g));
  const bool pairs = g.kernel_width < integer_group && g.stride_width == 1 && g.dilation_width == 1;
  const std::int64_t shifted = chunks_of(g) * chunk_bytes(g), taps = line_groups(g) * integer_group;
  const std::int64_t line_step = g.dilation_height * g.width * g.channels, tap_step = g.dilation_width * g.channels;
  const std::int64_t top = from.line * g.stride_height - g.pad_top, bottom = top + (g.kernel_height - 1) * g.dilation_height;
  const bool lines_inside = top >= 0 && bottom < g.height, is_square = g.kernel_height == 3 && g.kernel_width == 3;
  const bool quads = pairs && lines_inside && g.channels <= narrow_channels && g.kernel_width == 3;
  const auto narrow_mask = static_cast<__mmask32>((__mmask64{1} << std::min(g.channels, narrow_channels)) - 1);
  for (std::int64_t column = 0; column < g.out_width;) {
    const std::int64_t first = column - g.pad_left;
    if (quads && first >= 0 && first + 6 <= g.width && column + 4 <= g.out_width) {
      const std::uint8_t* const at = from.x + ((from.image * g.height + top) * g.width + first) * g.channels;
      four_narrow_pixels<x_signed>(g, at, line_step, narrow_mask, weights, shifted, requantised, by.y + column * g.channels);
      column += 4;
      continue;
    }
    const int count = pairs && column + 1 < g.out_width ? 2 : 1;
    // Taps beyond the kernel meet weights of 0, but have to be readable.
    const std::int64_t last = g.kernel_width - 1 + (count - 1), left = column * g.stride_width - g.pad_left;
    const bool is_inside = lines_inside && left >= 0 && left + last * g.dilation_width < g.width;
    const std::uint8_t* const inner =
        is_inside && is_square ? from.x + ((from.image * g.height + top) * g.width + left) * g.channels : nullptr;
    if (inner != nullptr) {
      // read as they lie in x
    } else if (is_inside) {
      const std::uint8_t* at = from.x + ((from.image * g.height + top) * g.width + left) * g.channels;
      for (std::int64_t a = 0; a < g.kernel_height; ++a, at += line_step) {
        for (std::int64_t b = 0; b < taps; ++b) pixels[a * taps + b] = b <= last ? at + b * tap_step : from.padding;
      }
    } else {
      for (std::int64_t a = 0; a < g.kernel_height; ++a) {
        for (std::int64_t b = 0; b < taps; ++b) pixels[a * taps + b] = b <= last ? from.pixel(column, a, b) : from.padding;
      }
    }
    for (std::int64_t channel = 0; channel < g.channels; channel += chunk_channels) {
      const std::int64_t n = g.channels - channel;
      const __mmask64 mask = n >= chunk_channels ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
      const std::int8_t* const own = weights + channel / chunk_channels * chunk_bytes(g);
      std::uint8_t* const to = by.y + column * g.channels;
      if (inner != nullptr && count == 2) {
        inner_pixels_of_chunk<x_signed, 2>(g, inner + channel, line_step, tap_step, channel, mask, own, shifted, requantised, to);
      } else if (inner != nullptr) {
        inner_pixels_of_chunk<x_signed, 1>(g, inner + channel, line_step, tap_step, channel, mask, own, shifted, requantised, to);
      } else if (count == 2) {
        pixels_of_chunk<x_signed, 2>(g, pixels, channel, mask, own, shifted, requantised, to);
      } else {
        pixels_of_chunk<x_signed, 1>(g, pixels, channel, mask, own, shifted, requantised, to);
      }
    }
    column += count;
  }
}

}  // namespace vnni

TENON_END_TARGET

#endif  // TENON_X86

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
void sum_pixel(const Lines& from, std::int64_t column, bool x_signed, std::int16_t zero_point, const std::int16_t* w, std::int32_t* sums) {
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
        const Lines from{g, x, &none, i / g.out_height, i % g.out_height};
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
      memory.ordered_bias[i] = !exists ? 0 : memory.bias[c] - (x_signed ? 128 * column_sums[c] : 0);
      memory.ordered_factor[i] = exists ? memory.factor[c] : 0;
    }
    std::memset(memory.padding, x_zero_point, static_cast<std::size_t>(g.channels));
    const auto* const weights = static_cast<const std::int8_t*>(packed) + first_part_bytes(g);
    const std::int64_t tasks = sdk::ceil_div(lines, grain);
    for_each_task(call.host, tasks, [&](std::int64_t task, std::int64_t worker) {
      IntegerRequantisation own = requantisation;
      own.bias = memory.ordered_bias;
      own.factor = memory.ordered_factor;
      for (std::int64_t i = task * grain; i < std::min(lines, (task + 1) * grain); ++i) {
        const Lines from{g, x, memory.padding, i / g.out_height, i % g.out_height};
        const std::uint8_t** const pixels = memory.pixels + worker * memory.pixel_count;
        own.y = y + i * g.out_width * g.channels;
        x_signed ? vnni::line<true>(from, weights, own, pixels) : vnni::line<false>(from, weights, own, pixels);
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
      const Lines from{g, x, &none, i / g.out_height, i % g.out_height};
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
