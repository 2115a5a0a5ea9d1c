// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_winograd.h"

#include "gemm/panels.h"
#include "simd/foreach_target.h"
#include "workers.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "conv/winograd_transforms.h"
#include "elementwise/half.h"
#include "simd/activations.h"
#include "simd/bf16.h"
#include "simd/simd.h"

#ifndef TENON_OPENBLAS_CONV_WINOGRAD_ONCE
#define TENON_OPENBLAS_CONV_WINOGRAD_ONCE
namespace tenon::openblas {
namespace {

constexpr std::int64_t positions = 36, max_taps = 25;

/// The matrices of a block of tiles: x (tiles, channels) and products (tiles, out_channels).
struct TileMemory {
  float* x;
  float* y;
  const float* zeros;            ///< as many as channels, of any type
  std::int64_t x_step, x_plane;  ///< from tile to tile, from matrix to matrix
  std::int64_t y_step, y_plane;
};

}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

using F = Wide<float>;
using V = hn::Vec<F>;

/// A vector of channels, or the n that are left.
template <bool whole, class T>
HWY_INLINE V load_part(F d, const T* from, std::int64_t n) {
  return whole ? load_stored(d, from) : load_stored_first(d, from, n);
}
template <bool whole, class T>
HWY_INLINE void store_part(V v, F d, T* to, std::int64_t n) {
  if (whole) {
    store_rounded(v, d, to);
  } else {
    store_rounded_first(v, d, to, n);
  }
}

/// The 36 transformed values of up to one vector of channels, from the 36 pixels of a tile.
template <bool whole, class T>
HWY_INLINE void input_vector(const T* const (&pixels)[positions], std::int64_t channel, std::int64_t n, float* out, std::int64_t plane) {
  const F d;
  V half[6][6];
  for (int j = 0; j < 6; ++j) {
    V x[6], t[6];
    for (int i = 0; i < 6; ++i) x[i] = load_part<whole>(d, pixels[i * 6 + j] + channel, n);
    winograd_input(d, x, t);
    for (int i = 0; i < 6; ++i) half[i][j] = t[i];
  }
  for (int i = 0; i < 6; ++i) {
    V t[6];
    winograd_input(d, half[i], t);
    for (int j = 0; j < 6; ++j) hn::StoreU(t[j], d, out + (i * 6 + j) * plane);
  }
}

struct Place {
  std::int64_t image, row, column;  ///< of a tile
};
Place place_of(const WinogradConv& conv, std::int64_t tile) {
  const std::int64_t columns = conv.tile_columns();
  const std::int64_t rows = conv.tile_rows();
  return {tile / columns / rows, tile / columns % rows, tile % columns};
}

/// The operations on a result before it is stored.
template <class T, class Activate>
struct OutputEpilogue {
  const T* bias;
  const T* residual;
  T* y;
  Activate activate;
};

/// Computes up to one vector of channels of the results of a tile, of which `rows` x `columns` lie in the image, from y[at] on.
template <int results, bool whole, class T, class Activate>
HWY_INLINE void output_vector(const float* m, std::int64_t plane, const OutputEpilogue<T, Activate>& epilogue, std::int64_t channel,
                              std::int64_t n, std::int64_t at, std::int64_t line, std::int64_t pixel, std::int64_t rows,
                              std::int64_t columns) {
  const F d;
  V half[results][6];
  for (int j = 0; j < 6; ++j) {
    V x[6], y[results];
    for (int i = 0; i < 6; ++i) x[i] = hn::LoadU(d, m + (i * 6 + j) * plane);
    winograd_output(d, x, y);
    for (int i = 0; i < results; ++i) half[i][j] = y[i];
  }
  const V bias = epilogue.bias == nullptr ? hn::Zero(d) : load_part<whole>(d, epilogue.bias + channel, n);
  for (int i = 0; i < results; ++i) {
    if (i >= rows) break;
    V y[results];
    winograd_output(d, half[i], y);
    for (int j = 0; j < results; ++j) {
      if (j >= columns) break;
      const std::int64_t to = at + i * line + j * pixel + channel;
      V value = hn::Add(y[j], bias);
      if (epilogue.residual != nullptr) value = hn::Add(value, load_part<whole>(d, epilogue.residual + to, n));
      store_part<whole>(epilogue.activate(d, value), d, epilogue.y + to, n);
    }
  }
}

template <int results, class T, class Activate>
void output_tiles(const WinogradConv& conv, const WinogradOperands<T>& o, const TileMemory& memory, const Activate& activate,
                  std::int64_t first, std::int64_t begin, std::int64_t end) {
  const OutputEpilogue<T, Activate> epilogue{o.bias, o.residual, o.y, activate};
  const std::int64_t n = lanes(F());
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const Place place = place_of(conv, tile);
    const std::int64_t row = results * place.row;
    const std::int64_t column = results * place.column;
    const std::int64_t line = conv.out_width * conv.out_channels;
    const std::int64_t at = ((place.image * conv.out_height + row) * conv.out_width + column) * conv.out_channels;
    const float* const m = memory.y + (tile - first) * memory.y_step;
    const std::int64_t rows = conv.out_height - row;
    const std::int64_t columns = conv.out_width - column;
    std::int64_t c = 0;
    for (; c + n <= conv.out_channels; c += n) {
      output_vector<results, true>(m + c, memory.y_plane, epilogue, c, n, at, line, conv.out_channels, rows, columns);
    }
    if (c < conv.out_channels) {
      output_vector<results, false>(m + c, memory.y_plane, epilogue, c, conv.out_channels - c, at, line, conv.out_channels, rows, columns);
    }
  }
}

/// The pixels of a tile of x.
template <class T>
void find_pixels(const WinogradConv& conv, const T* x, const T* zeros, std::int64_t tile, const T* (&out_pixels)[positions]) {
  const Place place = place_of(conv, tile);
  for (std::int64_t i = 0; i < 6; ++i) {
    const std::int64_t row = conv.tile_results() * place.row + i - conv.pad_top;
    for (std::int64_t j = 0; j < 6; ++j) {
      const std::int64_t column = conv.tile_results() * place.column + j - conv.pad_left;
      const bool inside = row >= 0 && row < conv.height && column >= 0 && column < conv.width;
      out_pixels[i * 6 + j] = inside ? x + ((place.image * conv.height + row) * conv.width + column) * conv.channels : zeros;
    }
  }
}

/// Fetches the last `columns` columns of a tile: the others are those of the tile before, which has read them.
template <class T>
HWY_INLINE void prefetch_pixels(const T* const (&pixels)[positions], std::int64_t channel, std::int64_t columns) {
  for (int i = 0; i < 6; ++i) {
    for (std::int64_t j = 6 - columns; j < 6; ++j) hwy::Prefetch(pixels[i * 6 + j] + channel);
  }
}

/// Transforms tiles [begin, end); `first` is the index of the first tile in `memory`.
template <class T>
void input_tiles(const WinogradConv& conv, const T* x, const TileMemory& memory, std::int64_t first, std::int64_t begin, std::int64_t end) {
  const std::int64_t n = lanes(F());
  const T* const zeros = reinterpret_cast<const T*>(memory.zeros);
  const T* pixels[2][positions];
  if (begin < end) find_pixels(conv, x, zeros, begin, pixels[begin % 2]);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const T* const(&of_tile)[positions] = pixels[tile % 2];
    const T*(&of_next)[positions] = pixels[(tile + 1) % 2];
    find_pixels(conv, x, zeros, std::min(tile + 1, end - 1), of_next);
    float* const out = memory.x + (tile - first) * memory.x_step;
    std::int64_t c = 0;
    for (; c + n <= conv.channels; c += n) {
      prefetch_pixels(of_next, c, conv.tile_results());
      input_vector<true>(of_tile, c, n, out + c, memory.x_plane);
    }
    if (c < conv.channels) input_vector<false>(of_tile, c, conv.channels - c, out + c, memory.x_plane);
  }
}

template <class T>
void output_tiles_of(const WinogradConv& conv, const WinogradOperands<T>& o, const TileMemory& memory, std::int64_t first,
                     std::int64_t begin, std::int64_t end) {
  with_activation<float>(o.activation, [&](const auto& activate) {
    if (conv.taps == 5) return output_tiles<2>(conv, o, memory, activate, first, begin, end);
    output_tiles<4>(conv, o, memory, activate, first, begin, end);
  });
}

/// G w G' of one channel and `width` output channels, whose taps are at w[tap * width + o]; in double, rounded once.
template <int taps>
void transform_weights(const double* w, float* out, std::int64_t plane) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> narrow;
  using W = hn::Vec<hn::ScalableTag<double>>;
  constexpr std::int64_t width = panel_width<float>;
  using Points = WinogradPoints;
  constexpr double p = Points::p, q = Points::q, at_zero = Points::zero_scale, at_p = Points::p_scale, at_q = Points::q_scale;
  // The values at z and -z of the polynomial whose coefficients are c, times `scale`.
  const auto at = [&](double z, double scale, const W(&c)[taps], W& plus, W& minus) HWY_ATTR {
    W even = c[taps - 1], odd = c[taps - 2];
    for (int i = taps - 3; i >= 0; i -= 2) even = hn::MulAdd(hn::Set(d, z * z), even, c[i]);
    for (int i = taps - 4; i >= 0; i -= 2) odd = hn::MulAdd(hn::Set(d, z * z), odd, c[i]);
    even = hn::Mul(hn::Set(d, scale), even);
    odd = hn::Mul(hn::Set(d, scale * z), odd);
    plus = hn::Add(even, odd);
    minus = hn::Sub(even, odd);
  };
  const auto transform = [&](const W(&c)[taps], W(&t)[6]) HWY_ATTR {
    t[0] = hn::Mul(hn::Set(d, at_zero), c[0]);
    at(p, at_p, c, t[1], t[2]);
    at(q, at_q, c, t[3], t[4]);
    t[5] = c[taps - 1];
  };
  for (std::int64_t o = 0; o < width; o += lanes(d)) {
    W half[6][taps];
    for (int b = 0; b < taps; ++b) {
      W column[taps], t[6];
      for (int a = 0; a < taps; ++a) column[a] = hn::Load(d, w + (taps * a + b) * width + o);
      transform(column, t);
      for (int i = 0; i < 6; ++i) half[i][b] = t[i];
    }
    for (int i = 0; i < 6; ++i) {
      W t[6];
      transform(half[i], t);
      for (int j = 0; j < 6; ++j) hn::StoreU(hn::DemoteTo(narrow, t[j]), narrow, out + (i * 6 + j) * plane + o);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

/// How tiles are divided. It depends on the sizes and the number of threads, but changes no bit of the result.
struct Layout {
  bool shared = false;                 ///< all threads work on one block, step by step; else each has its own blocks
  std::int64_t blocks = 1, block = 1;  ///< of nearly equal numbers of tiles; the largest number
  std::int64_t workers = 1;
  std::int64_t x_step = 0, x_plane = 0, y_step = 0, y_plane = 0, zeros = 0;

  std::int64_t block_elements() const { return positions * (x_plane + y_plane); }
  std::int64_t elements() const { return zeros + block_elements() * (shared ? 1 : workers); }
};

/// Floats between matrices, padded so that the 36 values of a tile map to different L1 cache sets.
std::int64_t plane_of(std::int64_t elements) {
  return sdk::round_up(elements, 1024) + 48;
}

// Bytes of a block's matrices, which stay in L2.
constexpr std::int64_t block_bytes = 1200 * 1024;
// Bytes of transformed weights above which threads share each read: weights that stream through a core's L2, and weights that come from
// memory. Reading them takes as long as the products of shared_tiles or distant_tiles tiles.
constexpr std::int64_t shared_weights = 4 * 1024 * 1024;
constexpr std::int64_t distant_weights = 16 * 1024 * 1024;
constexpr std::int64_t shared_tiles = 28;
constexpr std::int64_t distant_tiles = 64;

std::int64_t weight_bytes(const WinogradConv& conv) {
  return winograd_weight_elements(conv) * static_cast<std::int64_t>(sizeof(float));
}

Layout layout_of(const WinogradConv& conv, const sdk::Host& host) {
  Layout layout;
  const std::int64_t tiles = conv.tiles();
  layout.x_step = sdk::round_up(conv.channels, 16);
  if (layout.x_step % 1024 == 0) layout.x_step += 16;
  layout.y_step = panel_count<float>(conv.out_channels) * panel_width<float>;
  layout.zeros = sdk::round_up(conv.channels, 16);
  const std::int64_t fitting = std::max<std::int64_t>(14, block_bytes / 4 / positions / (layout.x_step + layout.y_step) / 14 * 14);
  const std::int64_t weights = weight_bytes(conv);
  layout.shared = weights > shared_weights;
  if (layout.shared) {
    layout.blocks = sdk::ceil_div(tiles, weights > distant_weights ? distant_tiles : shared_tiles);
  } else {
    // As many blocks for each thread, of nearly equal sizes: several smaller ones only if that does not make their rows few.
    layout.workers = worker_count(host, (tiles + 13) / 14);
    const std::int64_t wanted = std::clamp<std::int64_t>(tiles / 28, layout.workers, 4 * layout.workers);
    layout.blocks = std::min(tiles, sdk::round_up(std::max(wanted, sdk::ceil_div(tiles, fitting)), layout.workers));
  }
  layout.block = sdk::ceil_div(tiles, std::max<std::int64_t>(1, layout.blocks));
  layout.x_plane = plane_of(layout.block * layout.x_step);
  layout.y_plane = plane_of(layout.block * layout.y_step);
  return layout;
}

TileMemory memory_of(const Layout& layout, float* scratch, std::int64_t worker) {
  float* const mine = scratch + layout.zeros + worker * layout.block_elements();
  return {mine, mine + positions * layout.x_plane, scratch, layout.x_step, layout.x_plane, layout.y_step, layout.y_plane};
}

/// Multiplies matrix `position` of the tiles in memory, before matrix `next`.
void multiply(const WinogradConv& conv, const float* weights, const TileMemory& memory, std::int64_t position, std::int64_t tiles,
              std::int64_t next) {
  const std::int64_t plane = panel_elements<float>(conv.channels, conv.out_channels);
  PanelProduct<float> product;
  product.rows = tiles;
  product.k = conv.channels;
  product.columns = panel_count<float>(conv.out_channels) * panel_width<float>;
  product.a = memory.x + position * memory.x_plane;
  product.a_step = memory.x_step;
  product.panels = weights + position * plane;
  product.next_panels = weights + next * plane;
  product.y = memory.y + position * memory.y_plane;
  product.y_step = memory.y_step;
  multiply_panels(product);
}

template <class T>
void by_blocks(const WinogradConv& conv, const WinogradOperands<T>& operands, const Layout& layout, const sdk::Host& host, float* scratch) {
  const std::int64_t tiles = conv.tiles();
  for_each_task(host, layout.blocks, [&](std::int64_t block, std::int64_t worker) {
    const TileMemory memory = memory_of(layout, scratch, worker);
    const std::int64_t begin = block * tiles / layout.blocks, end = (block + 1) * tiles / layout.blocks;
    TENON_DISPATCH(input_tiles<T>)(conv, operands.x, memory, begin, begin, end);
    for (std::int64_t p = 0; p < positions; ++p) multiply(conv, operands.weights, memory, p, end - begin, (p + 1) % positions);
    TENON_DISPATCH(output_tiles_of<T>)(conv, operands, memory, begin, begin, end);
  });
}

/// For large weights: threads divide the 36 products of a block, and read each weight once for all of its tiles.
template <class T>
void by_steps(const WinogradConv& conv, const WinogradOperands<T>& operands, const Layout& layout, const sdk::Host& host, float* scratch) {
  const std::int64_t tiles = conv.tiles();
  const TileMemory memory = memory_of(layout, scratch, 0);
  for (std::int64_t block = 0; block < layout.blocks; ++block) {
    const std::int64_t first = block * tiles / layout.blocks, last = (block + 1) * tiles / layout.blocks;
    host.parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
      TENON_DISPATCH(input_tiles<T>)(conv, operands.x, memory, first, first + begin, first + end);
    });
    host.parallel_for(positions, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) multiply(conv, operands.weights, memory, p, last - first, p + 1 < end ? p + 1 : begin);
    });
    host.parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
      TENON_DISPATCH(output_tiles_of<T>)(conv, operands, memory, first, first + begin, first + end);
    });
  }
}

}  // namespace

bool winograd_fits(const ConvGeometry& g) {
  const bool is_square = g.kernel_height == g.kernel_width && (g.kernel_width == 3 || g.kernel_width == 5);
  return g.groups == 1 && is_square && g.stride_height == 1 && g.stride_width == 1 && g.dilation_height == 1 && g.dilation_width == 1;
}

bool winograd_pays(const WinogradConv& conv, double direct_cost) {
  // The cost in multiply-adds. With few tiles it is bound by reading the weights. A transform does little arithmetic per byte.
  constexpr std::int64_t tiles_near = 10, tiles_far = 24, transform = 500;
  const std::int64_t columns = sdk::round_up(conv.out_channels, 16);
  const std::int64_t tiles = std::max(conv.tiles(), weight_bytes(conv) > shared_weights ? tiles_far : tiles_near);
  // In double: the operands of a graph that is only asked about can have any size.
  const auto channels = static_cast<double>(conv.channels), padded = static_cast<double>(columns);
  const double here = static_cast<double>(positions * tiles) * channels * padded +
                      static_cast<double>(transform * conv.tiles()) * (channels + static_cast<double>(conv.out_channels));
  const double pixels = static_cast<double>(conv.images) * static_cast<double>(conv.out_height) * static_cast<double>(conv.out_width);
  return here < direct_cost * static_cast<double>(conv.taps * conv.taps) * pixels * channels * padded;
}

WinogradConv winograd_forward(const ConvGeometry& g) {
  return {g.images, g.height, g.width, g.channels, g.out_height, g.out_width, g.out_channels, g.pad_top, g.pad_left, g.kernel_width};
}

WinogradConv winograd_input_grad(const ConvGeometry& g) {
  return {g.images,
          g.out_height,
          g.out_width,
          g.out_channels,
          g.height,
          g.width,
          g.channels,
          g.kernel_width - 1 - g.pad_top,
          g.kernel_width - 1 - g.pad_left,
          g.kernel_width};
}

std::int64_t winograd_weight_elements(const WinogradConv& conv) {
  return positions * panel_elements<float>(conv.channels, conv.out_channels);
}

template <class T>
void winograd_weights(const WinogradConv& conv, const sdk::Host& host, const T* w, std::int64_t channel_step, std::int64_t out_channel_step,
                      bool rotated, float* out_weights) {
  constexpr std::int64_t width = panel_width<float>;
  const std::int64_t plane = panel_elements<float>(conv.channels, conv.out_channels);
  const std::int64_t panels = panel_count<float>(conv.out_channels);
  host.parallel_for(panels * conv.channels, 16, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = conv.taps * conv.taps;
    alignas(64) double taps[max_taps * width];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i / conv.channels * width;
      const std::int64_t n = std::min(width, conv.out_channels - first);
      const T* const source = w + i % conv.channels * channel_step + first * out_channel_step;
      for (std::int64_t tap = 0; tap < count; ++tap) {
        const T* const from = source + (rotated ? count - 1 - tap : tap);
        for (std::int64_t o = 0; o < n; ++o) taps[tap * width + o] = static_cast<double>(number_of(from[o * out_channel_step]));
        std::fill(taps + tap * width + n, taps + (tap + 1) * width, 0.0);
      }
      if (conv.taps == 5) {
        TENON_DISPATCH(transform_weights<5>)(taps, out_weights + i * width, plane);
      } else {
        TENON_DISPATCH(transform_weights<3>)(taps, out_weights + i * width, plane);
      }
    }
  });
}

std::size_t winograd_scratch(const WinogradConv& conv, const sdk::Host& host) {
  return scratch_bytes(layout_of(conv, host).elements(), sizeof(float));
}

template <class T>
void winograd_conv(const WinogradConv& conv, const WinogradOperands<T>& operands, const sdk::Host& host, void* scratch) {
  if (conv.tiles() == 0 || conv.out_channels == 0) return;
  const Layout layout = layout_of(conv, host);
  float* const memory = static_cast<float*>(scratch);
  std::fill_n(memory, layout.zeros, 0.0F);
  if (layout.shared) {
    by_steps(conv, operands, layout, host, memory);
  } else {
    by_blocks(conv, operands, layout, host, memory);
  }
}

#define TENON_INSTANTIATE_WINOGRAD(T)                                                                                        \
  template void winograd_weights(const WinogradConv&, const sdk::Host&, const T*, std::int64_t, std::int64_t, bool, float*); \
  template void winograd_conv(const WinogradConv&, const WinogradOperands<T>&, const sdk::Host&, void*);
TENON_INSTANTIATE_WINOGRAD(sdk::BFloat16)
TENON_INSTANTIATE_WINOGRAD(float)

}  // namespace tenon::openblas
#endif
