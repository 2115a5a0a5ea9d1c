// SPDX-License-Identifier: Apache-2.0
// convolutions.h - what the kernels of conv, conv_transpose and their gradients call: convolutions by cuDNN or, without a usable engine, by
// the plain kernel, with their epilogues.
#pragma once

#include <cstddef>
#include <string>

#include <tenon/sdk/kernel.h>

#include "conv/conv_shape.h"

namespace tenon::cuda {

/// The operands of a call by role, whichever is computed. `bias` belongs to the computed image; NULL: none.
struct ConvOperands {
  ConvDirection direction;
  const sdk::Operand *x, *w, *y, *bias;
};

/// Traits::scratch of convolution ops.
std::size_t convolution_scratch(const sdk::Call& call, const ConvOperands& operands);
std::size_t packed_filter_bytes(const sdk::Call& call, const ConvOperands& operands);
void pack_filter(const sdk::Call& call, const ConvOperands& operands, void* out_packed);
/// Traits::pack_form of filters: their layout, whatever the engine.
std::string filter_form(const sdk::Call& call, const ConvOperands& operands);
/// Runs the call, with its epilogue.
void convolve(const sdk::Call& call, const ConvOperands& operands);

}  // namespace tenon::cuda
