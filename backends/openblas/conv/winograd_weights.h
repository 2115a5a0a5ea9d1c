// SPDX-License-Identifier: Apache-2.0
// winograd_weights.h - the weights of convolutions by Winograd's algorithms, transformed: for each sum of a tile a matrix (k, out_channels)
// in panels, where k are the channels of all values of the sum.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <tenon/sdk/host.h>

#include "conv/winograd_geometry.h"

namespace tenon::openblas {

// Bytes of transformed weights above which threads share each read: weights that stream through a core's L2, and weights that come from
// memory.
inline constexpr std::int64_t shared_winograd_weights = 4 * 1024 * 1024;
inline constexpr std::int64_t distant_winograd_weights = 16 * 1024 * 1024;

/// The transformed weights of a sum.
struct WinogradMatrix {
  std::int64_t k = 0;
  std::int64_t at = 0;  ///< elements before it
};
/// Those of sum (i, j) at i points + j.
std::array<WinogradMatrix, winograd_max_values> winograd_matrices(const WinogradConv& conv);

/// Floats, and bytes, of all matrices.
std::int64_t winograd_weight_elements(const WinogradConv& conv);
std::int64_t winograd_weight_bytes(const WinogradConv& conv);

/// Names what the layout of the transformed weights depends on, besides their sizes.
std::string winograd_packing_key(const WinogradConv& conv);

/// w(a, b, c, o) is at w[c channel_step + o out_channel_step + taps a + b], or with `rotated` (by 180 degrees) at ... + taps taps - 1 -
/// taps a - b.
template <class T>
void winograd_weights(const WinogradConv& conv, const sdk::Host& host, const T* w, std::int64_t channel_step, std::int64_t out_channel_step,
                      bool rotated, float* out_weights);

}  // namespace tenon::openblas
