// SPDX-License-Identifier: Apache-2.0
// column_products.h - convolutions as products of the filters with a matrix of columns: a line for each channel and tap, a column for each
// window of the image. The columns of some images at a time are in the scratch memory of the call.
// On a CPU these images make one product, on other devices each makes one of a batch.
//
// Source  Chellapilla, Puri, Simard: High Performance Convolutional Neural Networks for Document Processing (2006).
#pragma once

#include "conv/conv.h"

namespace tenon::opencl {

/// Whether products are used: the matrices are large enough, and there are few groups. Else ops/conv.cl adds up each element by itself.
bool by_products(const ConvTerms& terms);
/// Bytes of scratch memory for the functions below. 0 without products.
std::size_t column_bytes(const ConvTerms& terms, std::size_t element_size);

/// y (output 0) from x, the filters and an optional bias (inputs 0 to 2).
template <class T>
void conv_by_products(const sdk::Call& call, const ConvTerms& terms);
/// dx (output 0) from dy and the filters (inputs 0 and 1), and for ConvTranspose a bias for each channel of dx (input 2).
template <class T>
void input_grad_by_products(const sdk::Call& call, const ConvTerms& terms);
/// dw (output 0) from dy and x (inputs 0 and 1).
template <class T>
void weight_grad_by_products(const sdk::Call& call, const ConvTerms& terms);

}  // namespace tenon::opencl
