// SPDX-License-Identifier: Apache-2.0
#include "conv/winograd_tiles.h"

#include "simd/foreach_target.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <type_traits>

#include "conv/winograd_forms.h"
#include "elementwise/half.h"
#include "simd/activations.h"
#include "simd/bf16.h"
#include "simd/simd.h"

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
HWY_INLINE void input_vector(const T* const (&pixels)[winograd_max_values], std::int64_t channel, std::int64_t n,
                             float* const (&out)[winograd_max_values]) {
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

/// The results of a tile in y.
struct ResultTile {
  std::int64_t at;             ///< the first one
  std::int64_t line, pixel;    ///< elements from line to line, and from pixel to pixel
  std::int64_t rows, columns;  ///< results from the first one to the ends of the image
};

/// Computes up to one vector of channels of the results of a tile that lie in the image; with `pools` the largest of each 2x2 of them.
template <class Form, bool pools, bool whole, class T, class Activate>
HWY_INLINE void output_vector(const float* m, std::int64_t plane, const OutputEpilogue<T, Activate>& epilogue, std::int64_t channel,
                              std::int64_t n, const ResultTile& tile) {
  const F d;
  constexpr int results = Form::results, window = pools ? 2 : 1;
  V half[results][Form::points];
  output_columns<Form>(m, plane, half);
  const V bias = epilogue.bias == nullptr ? hn::Zero(d) : load_part<whole>(d, epilogue.bias + channel, n);
  for (int i = 0; i + window <= results; i += window) {
    if (i + window > tile.rows) break;
    V y[window][results];
    for (int row = 0; row < window; ++row) Form::output(d, half[i + row], y[row]);
    for (int j = 0; j + window <= results; j += window) {
      if (j + window > tile.columns) break;
      const std::int64_t to = tile.at + i / window * tile.line + j / window * tile.pixel + channel;
      if constexpr (pools) {
        const auto result = [&](int row, int column)
                                HWY_ATTR { return stored_value(epilogue.activate(d, hn::Add(y[row][j + column], bias)), epilogue.y); };
        V best = result(0, 0);
        best = larger(result(0, 1), best);
        best = larger(result(1, 0), best);
        best = larger(result(1, 1), best);
        store_part<whole>(best, d, epilogue.y + to, n);
      } else {
        V value = hn::Add(y[0][j], bias);
        if (epilogue.residual != nullptr) value = hn::Add(value, load_part<whole>(d, epilogue.residual + to, n));
        store_part<whole>(epilogue.activate(d, value), d, epilogue.y + to, n);
      }
    }
  }
}

/// The results of tiles [begin, end), of which `first` is the first one in memory.
template <class Form, bool pools, class T, class Activate>
void output_tiles(const WinogradConv& conv, const WinogradOperands<T>& o, const WinogradTileMemory& memory, const Activate& activate,
                  std::int64_t first, std::int64_t begin, std::int64_t end) {
  const OutputEpilogue<T, Activate> epilogue{o.bias, o.residual, o.y, activate};
  constexpr std::int64_t window = pools ? 2 : 1;
  const std::int64_t n = lanes(F()), channels = conv.out_channels, height = conv.out_height / window, width = conv.out_width / window;
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const Place place = place_of(conv, tile);
    const std::int64_t row = Form::results * place.row, column = Form::results * place.column;
    const std::int64_t at = ((place.image * height + row / window) * width + column / window) * channels;
    const ResultTile results{at, width * channels, channels, conv.out_height - row, conv.out_width - column};
    const float* const m = memory.y + (tile - first) * memory.y_step;
    std::int64_t c = 0;
    for (; c + n <= channels; c += n) output_vector<Form, pools, true>(m + c, memory.y_plane, epilogue, c, n, results);
    if (c < channels) output_vector<Form, pools, false>(m + c, memory.y_plane, epilogue, c, channels - c, results);
  }
}

/// The pixels of a tile of x.
template <class Form, class T>
void find_pixels(const WinogradConv& conv, const T* x, const T* zeros, std::int64_t tile, const T* (&out_pixels)[winograd_max_values]) {
  const Place place = place_of(conv, tile);
  find_tile_pixels<Form::reach>(x + place.image * conv.height * conv.width * conv.channels, conv.height, conv.width, conv.channels,
                                Form::step * place.row - conv.pad_top, Form::step * place.column - conv.pad_left, zeros, out_pixels);
}

/// Fetches the last columns of a tile: the others are those of the tile before, which has read them.
template <class Form, class T>
HWY_INLINE void prefetch_pixels(const T* const (&pixels)[winograd_max_values], std::int64_t channel) {
  for (int i = 0; i < Form::reach; ++i) {
    for (int j = Form::reach - Form::step; j < Form::reach; ++j) hwy::Prefetch(pixels[i * Form::reach + j] + channel);
  }
}

/// Transforms tiles [begin, end); `first` is the index of the first tile in `memory`.
template <class Form, class T>
void transform_tiles(const WinogradConv& conv, const T* x, const WinogradTileMemory& memory, std::int64_t first, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t n = lanes(F());
  const T* const zeros = static_cast<const T*>(memory.zeros);
  const T* pixels[2][winograd_max_values];
  if (begin < end) find_pixels<Form>(conv, x, zeros, begin, pixels[begin % 2]);
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const T* const(&of_tile)[winograd_max_values] = pixels[tile % 2];
    const T*(&of_next)[winograd_max_values] = pixels[(tile + 1) % 2];
    find_pixels<Form>(conv, x, zeros, std::min(tile + 1, end - 1), of_next);
    float* out[winograd_max_values];
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
void input_tiles(const WinogradConv& conv, const T* x, const WinogradTileMemory& memory, std::int64_t first, std::int64_t begin,
                 std::int64_t end) {
  with_winograd_form(conv, [&]<class Form>(Form) { transform_tiles<Form>(conv, x, memory, first, begin, end); });
}

template <class T>
void output_tiles_of(const WinogradConv& conv, const WinogradOperands<T>& o, const WinogradTileMemory& memory, std::int64_t first,
                     std::int64_t begin, std::int64_t end) {
  with_activation<float>(o.activation, [&]<class Activate>(const Activate& activate) {
    with_winograd_form(conv, [&]<class Form>(Form) {
      // What winograd_pools() allows. Code for the rest would take half of the time in which this file is compiled.
      if constexpr (Form::results % 2 == 0 && (std::is_same_v<Activate, Relu> || std::is_same_v<Activate, Identity>)) {
        if (o.max_pool) return output_tiles<Form, true>(conv, o, memory, activate, first, begin, end);
      }
      output_tiles<Form, false>(conv, o, memory, activate, first, begin, end);
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

template <class T>
void winograd_input_tiles(const WinogradConv& conv, const T* x, const WinogradTileMemory& memory, std::int64_t first, std::int64_t begin,
                          std::int64_t end) {
  TENON_DISPATCH(input_tiles<T>)(conv, x, memory, first, begin, end);
}

template <class T>
void winograd_output_tiles(const WinogradConv& conv, const WinogradOperands<T>& operands, const WinogradTileMemory& memory,
                           std::int64_t first, std::int64_t begin, std::int64_t end) {
  TENON_DISPATCH(output_tiles_of<T>)(conv, operands, memory, first, begin, end);
}

#define TENON_INSTANTIATE_WINOGRAD_TILES(T)                                                                                               \
  template void winograd_input_tiles(const WinogradConv&, const T*, const WinogradTileMemory&, std::int64_t, std::int64_t, std::int64_t); \
  template void winograd_output_tiles(const WinogradConv&, const WinogradOperands<T>&, const WinogradTileMemory&, std::int64_t,           \
                                      std::int64_t, std::int64_t);
TENON_INSTANTIATE_WINOGRAD_TILES(sdk::BFloat16)
TENON_INSTANTIATE_WINOGRAD_TILES(float)

}  // namespace tenon::openblas
#endif
