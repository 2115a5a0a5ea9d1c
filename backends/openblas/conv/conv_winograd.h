// SPDX-License-Identifier: Apache-2.0
// conv_winograd.h - 3x3 and 5x5 convolutions of f32 and bf16 by Winograd's algorithms in f32: F(4x4, 3x3) and F(3x3, 5x5), with 25 and 22 %
// of the multiplications; F(3x3, 3x3), F(2x2, 3x3) and F(2x2, 5x5), with 31, 44 and 36 %, for images that larger tiles divide badly, and
// whose weights are read from memory; and F(2x2, 3x3) of stride 2, with 69 %.
#pragma once

#include <cstddef>

#include <tenon/sdk/host.h>

#include "conv/winograd_geometry.h"
#include "conv/winograd_operands.h"

namespace tenon::openblas {

std::size_t winograd_scratch(const WinogradConv& conv, const sdk::Host& host);

/// Y = A' [ sum over c of (G w G') * (B' x B) ] A on tiles of reach x reach pixels of x, which give results x results of y; * is the
/// elementwise product, so that the sums over c of each of the elements are a matrix product (tiles, channels) (channels, out_channels).
/// The interpolation points 0, 3/4, -3/4, 3/2, -3/2 and infinity have a third of the error of the usual 0, 1, -1, 2, -2: within 10 epsilon
/// of sum |x| |w| for 3x3 and 4 for 5x5, measured. Tiles with 3x3 results have 0, 3/4, -3/4, 2 and infinity, and those with 2x2 have 0, 1,
/// -1 and infinity, whose errors are smaller. F(3x3, 5x5) has 1/4, -1/4, 3/4, -3/4, 2, -2 and infinity, within 10 epsilon for
/// the 8 channels or more that it is used for. Results of bf16 are rounded once, after the epilogue.
///
/// Source  Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2016), section 4; Barabasz, Anderson, Soodhalter, Gregg: Error
///         Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks (2020), for the choice of points.
template <class T>
void winograd_conv(const WinogradConv& conv, const WinogradOperands<T>& operands, const sdk::Host& host, void* scratch);

}  // namespace tenon::openblas
