// SPDX-License-Identifier: Apache-2.0
#include "quantize/block_quantized.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "gemm/panels.h"
#include "simd/simd.h"
#include "simd/x86.h"
#include "workers.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

// Plain loops, which the compiler vectorises for each instruction set.

/// Lines of weights of one block as numbers: (q - zero_point) scale. Lines of T follow each other.
template <class T, int bits>
void expand_lines(const std::uint8_t* weights, std::int64_t lines, const T* scales, const T* zero_points, T* out) {
  constexpr std::int64_t half = block_panel_width / 2;
  for (std::int64_t line = 0; line < lines; ++line, weights += block_panel_width * bits / 8, out += block_panel_width) {
    if constexpr (bits == 4) {
      for (std::int64_t j = 0; j < half; ++j) {
        out[j] = (static_cast<T>(weights[j] & 15) - zero_points[j]) * scales[j];
        out[half + j] = (static_cast<T>(weights[j] >> 4) - zero_points[half + j]) * scales[half + j];
      }
    } else {
      for (std::int64_t j = 0; j < block_panel_width; ++j) out[j] = (static_cast<T>(weights[j]) - zero_points[j]) * scales[j];
    }
  }
}

/// sums[j] += sum over the lines of a[line] lines[line][j]
template <class T>
void add_lines(const T* a, const T* lines, std::int64_t count, T* sums) {
  for (std::int64_t line = 0; line < count; ++line, lines += block_panel_width) {
    for (std::int64_t j = 0; j < block_panel_width; ++j) sums[j] += a[line] * lines[j];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Rows up to which weights are expanded in registers (AVX-512), or in a few lines in L1, instead of in a panel for register tiles.
constexpr std::int64_t few_rows_avx512 = 48, few_rows = 8;
// Lines of a panel of numbers: 128 KiB of f32, which stay in L2 while the rows pass.
constexpr std::int64_t expanded_lines = 1024;
// Bytes of weights worth a thread: about 10 us.
constexpr std::int64_t weight_grain = 64 * 1024;

/// Element i of integers of `bits` bits, the first in the lowest bits of a byte.
inline std::uint8_t element_at(const std::uint8_t* bytes, std::int64_t i, int bits) {
  if (bits == 8) return bytes[i];
  return static_cast<std::uint8_t>(bytes[i / 2] >> (4 * (i % 2)) & 15);
}

/// One block of a panel: its lines, and parameters of its columns.
template <class T>
struct Block {
  const std::uint8_t* weights;
  std::int64_t first, lines;  ///< of k
  const T* scales;
  alignas(64) T zero_points[block_panel_width];

  Block(const BlockProduct<T>& p, std::int64_t panel, std::int64_t block) {
    const BlockWeights& w = p.sizes;
    first = block * w.block_size;
    lines = std::min(w.block_size, w.k - first);
    weights = p.weights + (panel * w.k + first) * w.line_bytes();
    const std::int64_t parameters = (panel * w.blocks + block) * block_panel_width;
    scales = p.scales + parameters;
    for (std::int64_t j = 0; j < block_panel_width; ++j) {
      zero_points[j] = p.zero_points == nullptr ? static_cast<T>(1 << (w.bits - 1)) : static_cast<T>(p.zero_points[parameters + j]);
    }
  }
};

#if TENON_X86

TENON_BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl")

namespace avx512 {

/// A line of weights as two vectors of 16 numbers, without scales.
template <int bits>
inline void load_line(const std::uint8_t* line, const __m512 (&zero_points)[2], __m512 (&out)[2]) {
  if constexpr (bits == 4) {
    // The permutation reads the low four bits of each index.
    const __m512 digits = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i low = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line)));
    out[0] = _mm512_permutexvar_ps(low, digits);
    out[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(low, 4), digits);
  } else {
    for (int v = 0; v < 2; ++v) {
      out[v] = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line + 16 * v))));
    }
  }
  for (int v = 0; v < 2; ++v) out[v] = _mm512_sub_ps(out[v], zero_points[v]);
}

/// As expand_lines.
template <int bits>
void expand(const std::uint8_t* weights, std::int64_t lines, const float* scales, const float* zero_points, float* out) {
  __m512 scale[2], zero_point[2];
  for (int v = 0; v < 2; ++v) {
    scale[v] = _mm512_loadu_ps(scales + 16 * v);
    zero_point[v] = _mm512_loadu_ps(zero_points + 16 * v);
  }
  for (std::int64_t line = 0; line < lines; ++line, weights += block_panel_width * bits / 8, out += block_panel_width) {
    __m512 numbers[2];
    load_line<bits>(weights, zero_point, numbers);
    for (int v = 0; v < 2; ++v) _mm512_storeu_ps(out + 16 * v, _mm512_mul_ps(numbers[v], scale[v]));
  }
}

/// A panel's columns of `rows` rows from `row` on. The weights are read once, and expanded in registers.
template <int bits, int rows>
void multiply(const BlockProduct<float>& p, std::int64_t panel, std::int64_t row) {
  constexpr std::int64_t chains = rows == 1 ? 2 : 1;  // of additions, to hide their latency
  const BlockWeights& w = p.sizes;
  const std::int64_t column = panel * block_panel_width;
  __m512 totals[rows][2];
  for (auto& total : totals) total[0] = total[1] = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    const Block<float> block(p, panel, b);
    const __m512 zero_points[2] = {_mm512_load_ps(block.zero_points), _mm512_load_ps(block.zero_points + 16)};
    __m512 sums[chains][rows][2];
    for (auto& chain : sums) {
      for (auto& sum : chain) sum[0] = sum[1] = _mm512_setzero_ps();
    }
    const float* const a = p.a + row * w.k + block.first;
    const std::uint8_t* line = block.weights;
    std::int64_t k = 0;
    for (; k + chains <= block.lines; k += chains) {
      for (int c = 0; c < chains; ++c, line += block_panel_width * bits / 8) {
        __m512 weights[2];
        load_line<bits>(line, zero_points, weights);
        for (int r = 0; r < rows; ++r) {
          const __m512 factor = _mm512_set1_ps(a[r * w.k + k + c]);
          for (int v = 0; v < 2; ++v) sums[c][r][v] = _mm512_fmadd_ps(factor, weights[v], sums[c][r][v]);
        }
      }
    }
    if (k < block.lines) {
      __m512 weights[2];
      load_line<bits>(line, zero_points, weights);
      for (int r = 0; r < rows; ++r) {
        const __m512 factor = _mm512_set1_ps(a[r * w.k + k]);
        for (int v = 0; v < 2; ++v) sums[0][r][v] = _mm512_fmadd_ps(factor, weights[v], sums[0][r][v]);
      }
    }
    for (int v = 0; v < 2; ++v) {
      const __m512 scale = _mm512_loadu_ps(block.scales + 16 * v);
      for (int r = 0; r < rows; ++r) {
        __m512 sum = sums[0][r][v];
        if constexpr (chains == 2) sum = _mm512_add_ps(sum, sums[1][r][v]);
        totals[r][v] = _mm512_fmadd_ps(sum, scale, totals[r][v]);
      }
    }
  }
  for (std::int64_t v = 0; v < 2 && column + 16 * v < w.n; ++v) {
    const auto mask = static_cast<__mmask16>((1u << std::min<std::int64_t>(16, w.n - column - 16 * v)) - 1);
    const __m512 bias = p.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, p.bias + column + 16 * v);
    for (int r = 0; r < rows; ++r) {
      _mm512_mask_storeu_ps(p.y + (row + r) * w.n + column + 16 * v, mask, _mm512_add_ps(totals[r][v], bias));
    }
  }
}

// Most rows of a pass: their sums, a line of weights and a factor fill the registers.
constexpr int max_rows = 12;

/// The panel's columns of all rows, in passes of nearly equal heights; the panel stays in L1 or L2 between them.
template <int bits, int... rows>
void multiply_rows(const BlockProduct<float>& p, std::int64_t panel, std::integer_sequence<int, rows...>) {
  using Pass = void (*)(const BlockProduct<float>&, std::int64_t, std::int64_t);
  static constexpr Pass passes[] = {&multiply<bits, rows + 1>...};
  const std::int64_t count = (p.rows + max_rows - 1) / max_rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i * p.rows / count;
    passes[(i + 1) * p.rows / count - row - 1](p, panel, row);
  }
}

}  // namespace avx512

TENON_END_TARGET

#endif  // TENON_X86

/// Lines [from, to) of a block as numbers.
template <class T>
void expand(const BlockWeights& w, const Block<T>& block, std::int64_t from, std::int64_t to, T* out) {
  const std::uint8_t* const weights = block.weights + from * w.line_bytes();
#if TENON_X86
  if constexpr (std::is_same_v<T, float>) {
    if (instruction_set() >= InstructionSet::avx512) {
      return (w.bits == 4 ? avx512::expand<4> : avx512::expand<8>)(weights, to - from, block.scales, block.zero_points, out);
    }
  }
#endif
  if (w.bits == 4) return TENON_DISPATCH(expand_lines<T, 4>)(weights, to - from, block.scales, block.zero_points, out);
  TENON_DISPATCH(expand_lines<T, 8>)(weights, to - from, block.scales, block.zero_points, out);
}

/// A panel's columns of rows [row, row + rows), by lines that are expanded a few at a time.
template <class T>
void multiply_lines(const BlockProduct<T>& p, std::int64_t panel, std::int64_t row, std::int64_t rows) {
  constexpr std::int64_t piece = 16;
  const BlockWeights& w = p.sizes;
  const std::int64_t column = panel * block_panel_width, columns = std::min(block_panel_width, w.n - column);
  alignas(64) T sums[few_rows][block_panel_width] = {};
  alignas(64) T lines[piece * block_panel_width];
  for (std::int64_t b = 0; b < w.blocks; ++b) {
    const Block<T> block(p, panel, b);
    for (std::int64_t from = 0; from < block.lines; from += piece) {
      const std::int64_t to = std::min(block.lines, from + piece);
      expand(w, block, from, to, lines);
      for (std::int64_t r = 0; r < rows; ++r) {
        TENON_DISPATCH(add_lines<T>)(p.a + (row + r) * w.k + block.first + from, lines, to - from, sums[r]);
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    T* const y = p.y + (row + r) * w.n + column;
    for (std::int64_t j = 0; j < columns; ++j) y[j] = sums[r][j] + (p.bias == nullptr ? 0 : p.bias[column + j]);
  }
}

/// A panel's columns of few rows.
template <class T>
void multiply_few_rows(const BlockProduct<T>& p, std::int64_t panel) {
#if TENON_X86
  if constexpr (std::is_same_v<T, float>) {
    if (instruction_set() >= InstructionSet::avx512) {
      constexpr auto heights = std::make_integer_sequence<int, avx512::max_rows>();
      return p.sizes.bits == 4 ? avx512::multiply_rows<4>(p, panel, heights) : avx512::multiply_rows<8>(p, panel, heights);
    }
  }
#endif
  for (std::int64_t row = 0; row < p.rows; row += few_rows) multiply_lines(p, panel, row, std::min(few_rows, p.rows - row));
}

/// A panel's columns of many rows: the weights are expanded in `numbers`, a part of k at a time, for the register tiles of f32.
void multiply_expanded(const BlockProduct<float>& p, std::int64_t panel, float* numbers) {
  const BlockWeights& w = p.sizes;
  const std::int64_t column = panel * block_panel_width;
  for (std::int64_t begin = 0; begin < w.k; begin += expanded_lines) {
    const std::int64_t end = std::min(w.k, begin + expanded_lines);
    for (std::int64_t k = begin; k < end;) {
      const Block<float> block(p, panel, k / w.block_size);
      const std::int64_t from = k - block.first, to = std::min(block.lines, end - block.first);
      expand(w, block, from, to, numbers + (k - begin) * block_panel_width);
      k += to - from;
    }
    PanelProduct<float> product;
    product.rows = p.rows;
    product.k = end - begin;
    product.columns = std::min(block_panel_width, w.n - column);
    product.a = p.a + begin;
    product.a_step = w.k;
    product.panels = numbers;
    product.y = p.y + column;
    product.y_step = w.n;
    if (begin == 0) {
      product.bias = p.bias == nullptr ? nullptr : p.bias + column;
    } else {
      product.residual = product.y;
    }
    multiply_panels(product);
  }
}

/// Whether the weights are expanded for the register tiles of f32, in scratch memory.
template <class T>
bool expands([[maybe_unused]] const sdk::Host& host, std::int64_t rows) {
  if (!std::is_same_v<T, float> || rows <= few_rows) return false;
#if TENON_X86
  return rows > few_rows_avx512 || instruction_set_of(host) < InstructionSet::avx512;
#else
  return true;
#endif
}

std::int64_t expanded_elements(const BlockWeights& w) {
  return std::min(w.k, expanded_lines) * block_panel_width;
}

}  // namespace

void pack_block_weights(const sdk::Host& host, const BlockWeights& w, const std::uint8_t* from, std::uint8_t* out) {
  const std::int64_t row_bytes = w.blocks * w.block_size * w.bits / 8, line = w.line_bytes();
  host.parallel_for(w.panels(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      std::uint8_t* const lines = out + panel * w.k * line;
      std::memset(lines, 0, static_cast<std::size_t>(w.k * line));
      const std::int64_t columns = std::min(block_panel_width, w.n - panel * block_panel_width);
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::uint8_t* const row = from + (panel * block_panel_width + j) * row_bytes;
        std::uint8_t* const to = lines + (w.bits == 4 ? j % 16 : j);
        const int shift = w.bits == 4 && j >= 16 ? 4 : 0;
        for (std::int64_t k = 0; k < w.k; ++k) to[k * line] |= static_cast<std::uint8_t>(element_at(row, k, w.bits) << shift);
      }
    }
  });
}

template <class T>
void pack_block_scales(const BlockWeights& w, const T* from, T* out) {
  for (std::int64_t i = 0; i < w.parameters(); ++i) {
    const std::int64_t column = i / (w.blocks * block_panel_width) * block_panel_width + i % block_panel_width;
    out[i] = column < w.n ? from[column * w.blocks + i / block_panel_width % w.blocks] : T{0};
  }
}
template void pack_block_scales(const BlockWeights& w, const float* from, float* out);
template void pack_block_scales(const BlockWeights& w, const double* from, double* out);

void pack_block_zero_points(const BlockWeights& w, const std::uint8_t* from, std::uint8_t* out) {
  const std::int64_t row_bytes = (w.blocks * w.bits + 7) / 8;
  for (std::int64_t i = 0; i < w.parameters(); ++i) {
    const std::int64_t column = i / (w.blocks * block_panel_width) * block_panel_width + i % block_panel_width;
    out[i] = column < w.n ? element_at(from + column * row_bytes, i / block_panel_width % w.blocks, w.bits) : std::uint8_t{0};
  }
}

template <class T>
std::int64_t block_product_scratch(const sdk::Host& host, const BlockWeights& w, std::int64_t rows) {
  return expands<T>(host, rows) ? worker_count(host, w.panels()) * expanded_elements(w) : 0;
}
template std::int64_t block_product_scratch<float>(const sdk::Host& host, const BlockWeights& w, std::int64_t rows);
template std::int64_t block_product_scratch<double>(const sdk::Host& host, const BlockWeights& w, std::int64_t rows);

template <class T>
void multiply_block_quantized(const sdk::Host& host, const BlockProduct<T>& product, [[maybe_unused]] T* scratch) {
  const BlockWeights& w = product.sizes;
  if constexpr (std::is_same_v<T, float>) {
    if (expands<T>(host, product.rows)) {
      return for_each_task(host, w.panels(), [&](std::int64_t panel, std::int64_t worker) {
        multiply_expanded(product, panel, scratch + worker * expanded_elements(w));
      });
    }
  }
  const std::int64_t grain = std::max<std::int64_t>(1, weight_grain / std::max<std::int64_t>(1, w.k * w.line_bytes()));
  host.parallel_for(w.panels(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) multiply_few_rows(product, panel);
  });
}
template void multiply_block_quantized(const sdk::Host& host, const BlockProduct<float>& product, float* scratch);
template void multiply_block_quantized(const sdk::Host& host, const BlockProduct<double>& product, double* scratch);

}  // namespace tenon::openblas
#endif
