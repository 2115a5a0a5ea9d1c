// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_winograd.h"

#include "elementwise/transpose.h"
#include "gemm/panels.h"
#include "simd/foreach_target.h"
#include "workers.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <type_traits>

#include <tenon/sdk/rounding.h>

#include "conv/winograd_forms.h"
#include "elementwise/half.h"
#include "simd/activations.h"
#include "simd/bf16.h"
#include "simd/simd.h"

#ifndef TENON_OPENBLAS_CONV_WINOGRAD_ONCE
#define TENON_OPENBLAS_CONV_WINOGRAD_ONCE
namespace tenon::openblas {
namespace {

constexpr std::int64_t max_values = 49, max_taps = 25;

/// The matrices of a block of tiles: x (tiles, channels) and products (tiles, out_channels).
struct TileMemory {
  float* x;
  float* y;
  const float* zeros;                                     ///< as many as channels, of any type
  std::array<std::int64_t, max_values> value_at, x_step;  ///< of each transformed value: that of the first tile in x, and from tile to tile
  std::int64_t y_step, y_plane;                           ///< of the products, from tile to tile, from matrix to matrix
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

/// The transformed values of up to one vector of channels, from the pixels of a tile.
template <class Form, bool whole, class T>
HWY_INLINE void input_vector(const T* const (&pixels)[max_values], std::int64_t channel, std::int64_t n, float* const (&out)[max_values]) {
  const F d;
  constexpr int reach = Form::reach;
  V half[reach][reach];
  for (int j = 0; j < reach; ++j) {
    V x[reach], t[reach];
    for (int i = 0; i < reach; ++i) x[i] = load_part<whole>(d, pixels[i * reach + j] + channel, n);
    Form::input(d, x, t);
    for (int i = 0; i < reach; ++i) half[i][j] = t[i];
  }
  for (int i = 0; i < reach; ++i) {
    V t[reach];
    Form::input(d, half[i], t);
    for (int j = 0; j < reach; ++j) {
      float* const to = out[i * reach + j] + channel;
      whole ? hn::StoreU(t[j], d, to) : store_part<false>(t[j], d, to, n);
    }
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

/// v as it is stored.
HWY_INLINE V stored_value(V v, const float*) {
  return v;
}
HWY_INLINE V stored_value(V v, const sdk::BFloat16*) {
  return from_bf16(to_bf16(v));
}

/// The operations on a result before it is stored.
template <class T, class Activate>
struct OutputEpilogue {
  const T* bias;
  const T* residual;
  T* y;
  Activate activate;
};

/// The first half of the output transform: `half` has the results of columns of products.
template <class Form>
HWY_INLINE void output_columns(const float* m, std::int64_t plane, V (&half)[Form::results][Form::points]) {
  const F d;
  constexpr int points = Form::points, results = Form::results;
  for (int j = 0; j < points; ++j) {
    V x[points], y[results];
    for (int i = 0; i < points; ++i) x[i] = hn::LoadU(d, m + (i * points + j) * plane);
    Form::output(d, x, y);
    for (int i = 0; i < results; ++i) half[i][j] = y[i];
  }
}

/// The largest elements so far, in the order and with the NaNs of MaxPool.
HWY_INLINE V larger(V x, V best) {
  return hn::IfThenElse(hn::Or(hn::Gt(x, best), hn::IsNaN(x)), x, best);
}

/// output_vector() with the largest of 2x2 results in place of these, from y[at] on.
template <class Form, bool whole, class T, class Activate>
HWY_INLINE void pooled_vector(const float* m, std::int64_t plane, const OutputEpilogue<T, Activate>& epilogue, std::int64_t channel,
                              std::int64_t n, std::int64_t at, std::int64_t line, std::int64_t pixel, std::int64_t rows,
                              std::int64_t columns) {
  const F d;
  constexpr int results = Form::results;
  V half[results][Form::points];
  output_columns<Form>(m, plane, half);
  const V bias = epilogue.bias == nullptr ? hn::Zero(d) : load_part<whole>(d, epilogue.bias + channel, n);
  for (int i = 0; i + 1 < results; i += 2) {
    if (i + 1 >= rows) break;
    V y[2][results];
    Form::output(d, half[i], y[0]);
    Form::output(d, half[i + 1], y[1]);
    for (int j = 0; j + 1 < results; j += 2) {
      if (j + 1 >= columns) break;
      const auto result = [&](int row, int column)
                              HWY_ATTR { return stored_value(epilogue.activate(d, hn::Add(y[row][j + column], bias)), epilogue.y); };
      V best = result(0, 0);
      best = larger(result(0, 1), best);
      best = larger(result(1, 0), best);
      best = larger(result(1, 1), best);
      store_part<whole>(best, d, epilogue.y + at + i / 2 * line + j / 2 * pixel + channel, n);
    }
  }
}

/// Computes up to one vector of channels of the results of a tile, of which `rows` x `columns` lie in the image, from y[at] on.
template <class Form, bool whole, class T, class Activate>
HWY_INLINE void output_vector(const float* m, std::int64_t plane, const OutputEpilogue<T, Activate>& epilogue, std::int64_t channel,
                              std::int64_t n, std::int64_t at, std::int64_t line, std::int64_t pixel, std::int64_t rows,
                              std::int64_t columns) {
  const F d;
  constexpr int results = Form::results;
  V half[results][Form::points];
  output_columns<Form>(m, plane, half);
  const V bias = epilogue.bias == nullptr ? hn::Zero(d) : load_part<whole>(d, epilogue.bias + channel, n);
  for (int i = 0; i < results; ++i) {
    if (i >= rows) break;
    V y[results];
    Form::output(d, half[i], y);
    for (int j = 0; j < results; ++j) {
      if (j >= columns) break;
      const std::int64_t to = at + i * line + j * pixel + channel;
      V value = hn::Add(y[j], bias);
      if (epilogue.residual != nullptr) value = hn::Add(value, load_part<whole>(d, epilogue.residual + to, n));
      store_part<whole>(epilogue.activate(d, value), d, epilogue.y + to, n);
    }
  }
}

template <class Form, class T, class Activate>
void output_tiles(const WinogradConv& conv, const WinogradOperands<T>& o, const TileMemory& memory, const Activate& activate,
                  std::int64_t first, std::int64_t begin, std::int64_t end) {
  const OutputEpilogue<T, Activate> epilogue{o.bias, o.residual, o.y, activate};
  const std::int64_t n = lanes(F());
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const Place place = place_of(conv, tile);
    const std::int64_t row = Form::results * place.row;
    const std::int64_t column = Form::results * place.column;
    const std::int64_t line = conv.out_width * conv.out_channels;
    const std::int64_t at = ((place.image * conv.out_height + row) * conv.out_width + column) * conv.out_channels;
    const float* const m = memory.y + (tile - first) * memory.y_step;
    const std::int64_t rows = conv.out_height - row;
    const std::int64_t columns = conv.out_width - column;
    std::int64_t c = 0;
    for (; c + n <= conv.out_channels; c += n) {
      output_vector<Form, true>(m + c, memory.y_plane, epilogue, c, n, at, line, conv.out_channels, rows, columns);
    }
    if (c < conv.out_channels) {
      output_vector<Form, false>(m + c, memory.y_plane, epilogue, c, conv.out_channels - c, at, line, conv.out_channels, rows, columns);
    }
  }
}

/// The same with the largest of 2x2 results.
template <class Form, class T, class Activate>
void pooled_tiles(const WinogradConv& conv, const WinogradOperands<T>& o, const TileMemory& memory, const Activate& activate,
                  std::int64_t first, std::int64_t begin, std::int64_t end) {
  const OutputEpilogue<T, Activate> epilogue{o.bias, nullptr, o.y, activate};
  const std::int64_t n = lanes(F()), height = conv.out_height / 2, width = conv.out_width / 2, line = width * conv.out_channels;
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const Place place = place_of(conv, tile);
    const std::int64_t row = Form::results * place.row, column = Form::results * place.column;
    const std::int64_t at = ((place.image * height + row / 2) * width + column / 2) * conv.out_channels;
    const float* const m = memory.y + (tile - first) * memory.y_step;
    const std::int64_t rows = conv.out_height - row, columns = conv.out_width - column;
    std::int64_t c = 0;
    for (; c + n <= conv.out_channels; c += n) {
      pooled_vector<Form, true>(m + c, memory.y_plane, epilogue, c, n, at, line, conv.out_channels, rows, columns);
    }
    if (c < conv.out_channels) {
      pooled_vector<Form, false>(m + c, memory.y_plane, epilogue, c, conv.out_channels - c, at, line, conv.out_channels, rows, columns);
    }
  }
}

/// The pixels of a tile of x.
template <class Form, class T>
void find_pixels(const WinogradConv& conv, const T* x, const T* zeros, std::int64_t tile, const T* (&out_pixels)[max_values]) {
  const Place place = place_of(conv, tile);
  for (std::int64_t i = 0; i < Form::reach; ++i) {
    const std::int64_t row = Form::step * place.row + i - conv.pad_top;
    for (std::int64_t j = 0; j < Form::reach; ++j) {
      const std::int64_t column = Form::step * place.column + j - conv.pad_left;
      const bool inside = row >= 0 && row < conv.height && column >= 0 && column < conv.width;
      out_pixels[i * Form::reach + j] = inside ? x + ((place.image * conv.height + row) * conv.width + column) * conv.channels : zeros;
    }
  }
}

/// Fetches the last columns of a tile: the others are those of the tile before, which has read them.
template <class Form, class T>
HWY_INLINE void prefetch_pixels(const T* const (&pixels)[max_values], std::int64_t channel) {
  for (int i = 0; i < Form::reach; ++i) {
    for (int j = Form::reach - Form::step; j < Form::reach; ++j) hwy::Prefetch(pixels[i * Form::reach + j] + channel);
  }
}

/// Transforms tiles [begin, end); `first` is the index of the first tile in `memory`.
template <class Form, class T>
void transform_tiles(const WinogradConv& conv, const T* x, const TileMemory& memory, std::int64_t first, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t n = lanes(F());
  const T* const zeros = reinterpret_cast<const T*>(memory.zeros);
  const T* pixels[2][max_values];
  if (begin < end) find_pixels<Form>(conv, x, zeros, begin, pixels[begin % 2]);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const T* const(&of_tile)[max_values] = pixels[tile % 2];
    const T*(&of_next)[max_values] = pixels[(tile + 1) % 2];
    find_pixels<Form>(conv, x, zeros, std::min(tile + 1, end - 1), of_next);
    float* out[max_values];
    for (std::size_t i = 0; i < Form::reach * Form::reach; ++i) out[i] = memory.x + memory.value_at[i] + (tile - first) * memory.x_step[i];
    std::int64_t c = 0;
    for (; c + n <= conv.channels; c += n) {
      prefetch_pixels<Form>(of_next, c);
      input_vector<Form, true>(of_tile, c, n, out);
    }
    if (c < conv.channels) input_vector<Form, false>(of_tile, c, conv.channels - c, out);
  }
}

template <class T>
void input_tiles(const WinogradConv& conv, const T* x, const TileMemory& memory, std::int64_t first, std::int64_t begin, std::int64_t end) {
  with_winograd_form(conv, [&]<class Form>(Form) { transform_tiles<Form>(conv, x, memory, first, begin, end); });
}

template <class T>
void output_tiles_of(const WinogradConv& conv, const WinogradOperands<T>& o, const TileMemory& memory, std::int64_t first,
                     std::int64_t begin, std::int64_t end) {
  with_activation<float>(o.activation, [&]<class Activate>(const Activate& activate) {
    with_winograd_form(conv, [&]<class Form>(Form) {
      // What winograd_pools() allows. Code for the rest would take half of the time in which this file is compiled.
      if constexpr (Form::results % 2 == 0 && (std::is_same_v<Activate, Relu> || std::is_same_v<Activate, Identity>)) {
        if (o.max_pool) return pooled_tiles<Form>(conv, o, memory, activate, first, begin, end);
      }
      output_tiles<Form>(conv, o, memory, activate, first, begin, end);
    });
  });
}

/// The vectors that weights are transformed in: weights of f32 in double, those of bf16, of fewer digits, in f32.
template <class T>
using WeightLanes = Wide<std::conditional_t<std::is_same_v<T, sdk::BFloat16>, float, double>>;

HWY_INLINE hn::Vec<Wide<double>> load_weights(Wide<double> d, const float* p) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Wide<double>>(), p));
}
HWY_INLINE V load_weights(F d, const sdk::BFloat16* p) {
  return load_stored(d, p);
}
HWY_INLINE void store_weights(hn::Vec<Wide<double>> v, Wide<double>, float* p) {
  const hn::Rebind<float, Wide<double>> narrow;
  hn::StoreU(hn::DemoteTo(narrow, v), narrow, p);
}
HWY_INLINE void store_weights(V v, F d, float* p) {
  hn::StoreU(v, d, p);
}

/// G w G' of one channel and `width` output channels, whose taps are at w[tap * width + o], or with `rotated` in the opposite order; the
/// values to out_values.
template <class Form, class T>
void transform_weights(const T* w, bool rotated, float* const (&out_values)[max_values]) {
  using D = WeightLanes<T>;
  using W = hn::Vec<D>;
  const D d;
  constexpr std::int64_t width = panel_width<float>;
  constexpr int taps = Form::taps, reach = Form::reach;
  const auto transform = [&](const W(&c)[taps], W(&t)[reach]) HWY_ATTR {
    for (int i = 0; i < reach; ++i) {
      t[i] = hn::Zero(d);
      for (int k = 0; k < taps; ++k) {
        const double g = Form::g[i][static_cast<std::size_t>(k)];
        if (g != 0) t[i] = hn::MulAdd(hn::Set(d, static_cast<hn::TFromD<D>>(g)), c[k], t[i]);
      }
    }
  };
  const std::int64_t first = rotated ? (taps * taps - 1) * width : 0, step = rotated ? -width : width;
  for (std::int64_t o = 0; o < width; o += lanes(d)) {
    W half[reach][taps];
    for (int b = 0; b < taps; ++b) {
      W column[taps], t[reach];
      for (int a = 0; a < taps; ++a) column[a] = load_weights(d, w + first + (taps * a + b) * step + o);
      transform(column, t);
      for (int i = 0; i < reach; ++i) half[i][b] = t[i];
    }
    for (int i = 0; i < reach; ++i) {
      W t[reach];
      transform(half[i], t);
      for (int j = 0; j < reach; ++j) store_weights(t[j], d, out_values[i * reach + j] + o);
    }
  }
}

template <class T>
void transform_weights_of(const WinogradConv& conv, const T* w, bool rotated, float* const (&out_values)[max_values]) {
  with_winograd_form(conv, [&]<class Form>(Form) { transform_weights<Form>(w, rotated, out_values); });
}

/// Copies n elements, whole cache lines, past the caches.
void stream_lines(const float* from, std::int64_t n, float* to) {
  const F d;
  for (std::int64_t i = 0; i < n; i += lanes(d)) hn::Stream(hn::Load(d, from + i), d, to + i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

/// The product for one sum of the tiles: its matrix x (tiles, k) and its weights (k, out_channels).
struct Sum {
  std::int64_t k = 0;                 ///< channels of all its values
  std::int64_t x_at = 0, x_step = 0;  ///< of x, elements
  std::int64_t weights_at = 0;        ///< elements
};

/// How tiles are divided. It depends on the sizes and the number of threads, but changes no bit of the result.
struct Layout {
  bool shared = false;                 ///< all threads work on one block, step by step; else each has its own blocks
  std::int64_t blocks = 1, block = 1;  ///< of nearly equal numbers of tiles; the largest number
  std::int64_t workers = 1;
  std::int64_t x_elements = 0, y_step = 0, y_plane = 0, zeros = 0;
  std::int64_t sum_count = 0;
  std::array<Sum, max_values> sums{};

  std::int64_t block_elements() const { return x_elements + sum_count * y_plane; }
  std::int64_t elements() const { return zeros + block_elements() * (shared ? 1 : workers); }
};

/// Floats between matrices, padded so that the values of a tile map to different L1 cache sets.
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
// Panels of a sum that are worth a task.
constexpr std::int64_t task_panels = 2;

std::int64_t weight_bytes(const WinogradConv& conv) {
  return winograd_weight_elements(conv) * static_cast<std::int64_t>(sizeof(float));
}

/// Channels of all values of sum (i, j).
std::int64_t k_of(const WinogradConv& conv, std::int64_t i, std::int64_t j) {
  return conv.values_of(i) * conv.values_of(j) * conv.channels;
}

/// body(value, i, j, part) for each transformed value of a tile, which is that of index `part` of sum (i, j).
template <class Body>
void for_each_value(const WinogradConv& conv, const Body& body) {
  for (std::int64_t i = 0; i < conv.points(); ++i) {
    for (std::int64_t j = 0; j < conv.points(); ++j) {
      for (std::int64_t part = 0; part < conv.values_of(i) * conv.values_of(j); ++part) {
        const std::int64_t u = conv.first_value(i) + part / conv.values_of(j), v = conv.first_value(j) + part % conv.values_of(j);
        body(u * conv.reach() + v, i, j, part);
      }
    }
  }
}

/// Floats between the rows of x of a sum.
std::int64_t x_step_of(std::int64_t k) {
  const std::int64_t step = sdk::round_up(k, 16);
  return step % 1024 == 0 ? step + 16 : step;
}

Layout layout_of(const WinogradConv& conv, const sdk::Host& host) {
  Layout layout;
  const std::int64_t tiles = conv.tiles(), points = conv.points();
  layout.sum_count = points * points;
  layout.y_step = panel_count<float>(conv.out_channels) * panel_width<float>;
  layout.zeros = sdk::round_up(conv.channels, 16);
  std::int64_t tile_elements = layout.sum_count * layout.y_step, weights_at = 0;
  for (std::int64_t i = 0; i < layout.sum_count; ++i) {
    Sum& sum = layout.sums[static_cast<std::size_t>(i)];
    sum.k = k_of(conv, i / points, i % points);
    sum.x_step = x_step_of(sum.k);
    sum.weights_at = weights_at;
    weights_at += panel_elements<float>(sum.k, conv.out_channels);
    tile_elements += sum.x_step;
  }
  const std::int64_t fitting = std::max<std::int64_t>(14, block_bytes / 4 / tile_elements / 14 * 14);
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
  for (Sum& sum : layout.sums) {
    sum.x_at = layout.x_elements;
    if (sum.k > 0) layout.x_elements += plane_of(layout.block * sum.x_step);
  }
  layout.y_plane = plane_of(layout.block * layout.y_step);
  return layout;
}

TileMemory memory_of(const WinogradConv& conv, const Layout& layout, float* scratch, std::int64_t worker) {
  float* const mine = scratch + layout.zeros + worker * layout.block_elements();
  TileMemory memory{mine, mine + layout.x_elements, scratch, {}, {}, layout.y_step, layout.y_plane};
  for_each_value(conv, [&](std::int64_t value, std::int64_t i, std::int64_t j, std::int64_t part) {
    const Sum& sum = layout.sums[static_cast<std::size_t>(i * conv.points() + j)];
    memory.value_at[static_cast<std::size_t>(value)] = sum.x_at + part * conv.channels;
    memory.x_step[static_cast<std::size_t>(value)] = sum.x_step;
  });
  return memory;
}

/// Panels [panel, end) of sum `index` of the tiles in memory, before the panels at `next`.
void multiply(const Layout& layout, const float* weights, const TileMemory& memory, std::int64_t index, std::int64_t tiles,
              std::int64_t panel, std::int64_t end, const float* next) {
  const Sum& sum = layout.sums[static_cast<std::size_t>(index)];
  PanelProduct<float> product;
  product.rows = tiles;
  product.k = sum.k;
  product.columns = (end - panel) * panel_width<float>;
  product.a = memory.x + sum.x_at;
  product.a_step = sum.x_step;
  product.panels = weights + sum.weights_at + panel * panel_step<float>(sum.k);
  product.next_panels = next;
  product.y = memory.y + index * memory.y_plane + panel * panel_width<float>;
  product.y_step = memory.y_step;
  multiply_panels(product);
}

template <class T>
void by_blocks(const WinogradConv& conv, const WinogradOperands<T>& operands, const Layout& layout, const sdk::Host& host, float* scratch) {
  const std::int64_t tiles = conv.tiles(), panels = panel_count<float>(conv.out_channels);
  for_each_task(host, layout.blocks, [&](std::int64_t block, std::int64_t worker) {
    const TileMemory memory = memory_of(conv, layout, scratch, worker);
    const std::int64_t begin = block * tiles / layout.blocks, end = (block + 1) * tiles / layout.blocks;
    TENON_DISPATCH(input_tiles<T>)(conv, operands.x, memory, begin, begin, end);
    for (std::int64_t i = 0; i < layout.sum_count; ++i) {
      const Sum& next = layout.sums[static_cast<std::size_t>((i + 1) % layout.sum_count)];
      multiply(layout, operands.weights, memory, i, end - begin, 0, panels, operands.weights + next.weights_at);
    }
    TENON_DISPATCH(output_tiles_of<T>)(conv, operands, memory, begin, begin, end);
  });
}

/// For large weights: threads divide the panels of all sums of a block, and read each weight once for all of its tiles.
template <class T>
void by_steps(const WinogradConv& conv, const WinogradOperands<T>& operands, const Layout& layout, const sdk::Host& host, float* scratch) {
  const std::int64_t tiles = conv.tiles(), panels = panel_count<float>(conv.out_channels);
  const std::int64_t tasks_of_sum = sdk::ceil_div(panels, task_panels), tasks = layout.sum_count * tasks_of_sum;
  const TileMemory memory = memory_of(conv, layout, scratch, 0);
  for (std::int64_t block = 0; block < layout.blocks; ++block) {
    const std::int64_t first = block * tiles / layout.blocks, last = (block + 1) * tiles / layout.blocks;
    host.parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
      TENON_DISPATCH(input_tiles<T>)(conv, operands.x, memory, first, first + begin, first + end);
    });
    for_each_task(host, tasks, [&](std::int64_t task, std::int64_t) {
      const std::int64_t sum = task / tasks_of_sum, panel = task % tasks_of_sum * task_panels, end = std::min(panels, panel + task_panels);
      // The panels of the next task follow in memory.
      const float* const next = operands.weights + layout.sums[static_cast<std::size_t>(sum)].weights_at +
                                end * panel_step<float>(layout.sums[static_cast<std::size_t>(sum)].k);
      multiply(layout, operands.weights, memory, sum, last - first, panel, end, task + 1 < tasks ? next : nullptr);
    });
    host.parallel_for(last - first, 1, [&](std::int64_t begin, std::int64_t end) {
      TENON_DISPATCH(output_tiles_of<T>)(conv, operands, memory, first, first + begin, first + end);
    });
  }
}

/// The cost in multiply-adds, in double: the operands of a graph that is only asked about can have any size. With few tiles it is bound by
/// reading the weights. A transform does little arithmetic per byte. That of the weights is left out, though a call takes the time for it
/// where they are not packed ahead: the algorithm, and with it the bits, must not depend on that.
double cost_of(const WinogradConv& conv) {
  constexpr std::int64_t tiles_near = 10, tiles_far = 24, transform = 14;
  const std::int64_t tiles = std::max(conv.tiles(), weight_bytes(conv) > shared_weights ? tiles_far : tiles_near);
  const auto channels = static_cast<double>(conv.channels), padded = static_cast<double>(sdk::round_up(conv.out_channels, 16));
  const double transforms = static_cast<double>(conv.values()) * channels +
                            static_cast<double>(conv.points() * conv.points()) * static_cast<double>(conv.out_channels);
  return static_cast<double>(conv.values() * tiles) * channels * padded + static_cast<double>(transform * conv.tiles()) * transforms;
}

/// `conv` with the fastest tile.
WinogradConv with_best_tile(WinogradConv conv) {
  if (conv.stride == 2) {
    conv.results = 2;
    return conv;
  }
  WinogradConv best = conv;
  // With few terms in its sums F(3x3, 5x5) has a larger error than the product of an im2col matrix may have.
  const std::int64_t largest = conv.taps == 3 ? 4 : conv.channels < 8 ? 2 : 3;
  for (conv.results = largest; conv.results >= 2; --conv.results) {
    if (best.results == 0 || cost_of(conv) < cost_of(best)) best = conv;
  }
  return best;
}

/// Whether the sizes other than the stride have a form.
bool fits(const ConvGeometry& g) {
  const bool is_square = g.kernel_height == g.kernel_width && (g.kernel_width == 3 || g.kernel_width == 5);
  return g.groups == 1 && is_square && g.dilation_height == 1 && g.dilation_width == 1 && g.stride_height == g.stride_width;
}

}  // namespace

bool winograd_pays(const WinogradConv& conv, double direct_cost) {
  if (conv.results == 0) return false;
  const auto channels = static_cast<double>(conv.channels), padded = static_cast<double>(sdk::round_up(conv.out_channels, 16));
  const double pixels = static_cast<double>(conv.images) * static_cast<double>(conv.out_height) * static_cast<double>(conv.out_width);
  const bool is_bf16 = direct_cost < 1;
  // Strides of 2 save less of the arithmetic than large weights cost where a call has to transform them.
  if (conv.stride == 2 && weight_bytes(conv) > shared_weights) direct_cost *= 0.8;
  // Panels of bf16 have 32 columns, and their rows take as long to be gathered as the products with 16 more.
  const double columns = is_bf16 ? static_cast<double>(sdk::round_up(conv.out_channels, panel_width<sdk::BFloat16>) + 16) : padded;
  return cost_of(conv) < direct_cost * static_cast<double>(conv.taps * conv.taps) * pixels * channels * columns;
}

WinogradConv winograd_forward(const ConvGeometry& g) {
  if (!fits(g) || !(g.stride_width == 1 || (g.stride_width == 2 && g.kernel_width == 3))) return {};
  return with_best_tile({g.images, g.height, g.width, g.channels, g.out_height, g.out_width, g.out_channels, g.pad_top, g.pad_left,
                         g.kernel_width, g.stride_width});
}

WinogradConv winograd_input_grad(const ConvGeometry& g) {
  if (!fits(g) || g.stride_width != 1) return {};
  return with_best_tile({g.images, g.out_height, g.out_width, g.out_channels, g.height, g.width, g.channels, g.kernel_width - 1 - g.pad_top,
                         g.kernel_width - 1 - g.pad_left, g.kernel_width});
}

std::string winograd_form(const WinogradConv& conv) {
  return "winograd " + std::to_string(conv.results) + ", stride " + std::to_string(conv.stride);
}

std::int64_t winograd_weight_elements(const WinogradConv& conv) {
  std::int64_t elements = 0;
  for (std::int64_t i = 0; i < conv.points(); ++i) {
    for (std::int64_t j = 0; j < conv.points(); ++j) elements += panel_elements<float>(k_of(conv, i, j), conv.out_channels);
  }
  return elements;
}

template <class T>
void winograd_weights(const WinogradConv& conv, const sdk::Host& host, const T* w, std::int64_t channel_step, std::int64_t out_channel_step,
                      bool rotated, float* out_weights) {
  constexpr std::int64_t width = panel_width<float>, block = 16;  // channels whose weights are read, and written, together
  const std::int64_t blocks = sdk::ceil_div(conv.channels, block), count = conv.taps * conv.taps;
  const Layout layout = layout_of(conv, host);
  const bool streams = weight_bytes(conv) > distant_weights;
  host.parallel_for(panel_count<float>(conv.out_channels) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) T taps[block * max_taps * width];
    alignas(64) float values[max_values * block * width];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t panel = i / blocks, first = panel * width, n = std::min(width, conv.out_channels - first);
      const std::int64_t channel = i % blocks * block, channels = std::min(block, conv.channels - channel);
      // Transpose to taps[channel][tap][out channel]: one matrix of all channels whose taps follow each other, or one for each channel.
      if (n < width) std::fill(std::begin(taps), std::end(taps), T{});
      const T* const from = w + channel * channel_step + first * out_channel_step;
      if (channel_step == count) {
        transpose_block(from, out_channel_step, taps, width, channels * count, n);
      } else {
        for (std::int64_t c = 0; c < channels; ++c) {
          transpose_block(from + c * channel_step, out_channel_step, taps + c * count * width, width, count, n);
        }
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        float* to_values[max_values];
        for (std::int64_t value = 0; value < max_values; ++value) to_values[value] = values + (value * block + c) * width;
        TENON_DISPATCH(transform_weights_of<T>)(conv, taps + c * count * width, rotated, to_values);
      }
      // The matrices of all values may lie at distances of a power of two: their lines would evict each other if they were written in
      // turns.
      for_each_value(conv, [&](std::int64_t value, std::int64_t a, std::int64_t b, std::int64_t part) {
        const Sum& sum = layout.sums[static_cast<std::size_t>(a * conv.points() + b)];
        const std::int64_t line = part * conv.channels + channel;
        float* const out = out_weights + sum.weights_at + panel * panel_step<float>(sum.k) + line * width;
        const float* const of_value = values + value * block * width;
        if (streams) {
          TENON_DISPATCH(stream_lines)(of_value, channels * width, out);
        } else {
          std::copy_n(of_value, channels * width, out);
        }
      });
    }
    if (streams) hwy::FlushStream();
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
