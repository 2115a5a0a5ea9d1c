// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_depthwise_vnni.h"

#include <algorithm>

#include "quantize/integer_requantiser.h"
#include "simd/unroll.h"

#if TENON_X86

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")

namespace tenon::openblas::vnni {
namespace {

/// Bytes of the sums of chunks, which begin with the bias.
template <bool small_factors>
class ChunkRequantiser {
 public:
  explicit ChunkRequantiser(const IntegerRequantisation& by) : requantiser_(by), bias_(by.bias), factor_(by.factor) {}

  /// The biases of the sums of a chunk.
  void begin(__m512i (&sums)[4], std::int64_t chunk) const {
    for (int v = 0; v < 4; ++v) sums[v] = _mm512_loadu_si512(bias_ + chunk * chunk_channels + 16 * v);
  }
  /// The bytes of 64 channels in order: packing within lanes of 128 bits undoes unpacking.
  __m512i operator()(const __m512i (&sums)[4], std::int64_t chunk) const {
    const std::int64_t at = chunk * chunk_channels;
    return requantiser_.pack(scaled(sums[0], at), scaled(sums[1], at + 16), scaled(sums[2], at + 32), scaled(sums[3], at + 48));
  }

 private:
  __m512i scaled(__m512i sum, std::int64_t at) const { return requantiser_.scaled<small_factors>(sum, _mm512_loadu_ps(factor_ + at)); }

  Requantiser requantiser_;
  const std::int32_t* bias_;
  const float* factor_;
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
template <bool x_signed, int count, class Requantised>
inline void pixels_of_chunk(const ConvGeometry& g, const std::uint8_t* const* pixels, std::int64_t channel, __mmask64 mask,
                            const std::int8_t* weights, std::int64_t shifted, const Requantised& requantised, std::uint8_t* y) {
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
template <bool x_signed, int count, class Requantised>
inline void inner_pixels_of_chunk(const ConvGeometry& g, const std::uint8_t* at, std::int64_t line_step, std::int64_t tap_step,
                                  std::int64_t channel, __mmask64 mask, const std::int8_t* weights, std::int64_t shifted,
                                  const Requantised& requantised, std::uint8_t* y) {
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
template <bool x_signed, class Requantised>
inline void four_narrow_pixels(const ConvGeometry& g, const std::uint8_t* at, std::int64_t line_step, __mmask32 mask,
                               const std::int8_t* weights, std::int64_t shifted, const Requantised& requantised, std::uint8_t* y) {
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

template <bool x_signed, bool small_factors>
void line(const DepthwiseLine& from, const std::int8_t* weights, const IntegerRequantisation& by, const std::uint8_t** pixels,
          std::uint8_t* y) {
  const ConvGeometry& g = from.g;
  const ChunkRequantiser<small_factors> requantised(by);
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
      four_narrow_pixels<x_signed>(g, at, line_step, narrow_mask, weights, shifted, requantised, y + column * g.channels);
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
      std::uint8_t* const to = y + column * g.channels;
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

}  // namespace

OrderedRequantisation::OrderedRequantisation(const IntegerRequantisation& ordered, std::int64_t chunks)
    : by(ordered), small_factors(Requantiser::are_small(ordered.factor, chunks * chunk_channels)) {}

void depthwise_line(const DepthwiseLine& from, bool x_signed, const std::int8_t* weights, const OrderedRequantisation& by,
                    const std::uint8_t** pixels, std::uint8_t* y) {
  if (by.small_factors) {
    x_signed ? line<true, true>(from, weights, by.by, pixels, y) : line<false, true>(from, weights, by.by, pixels, y);
  } else {
    x_signed ? line<true, false>(from, weights, by.by, pixels, y) : line<false, false>(from, weights, by.by, pixels, y);
  }
}

}  // namespace tenon::openblas::vnni

TENON_END_TARGET

#endif
