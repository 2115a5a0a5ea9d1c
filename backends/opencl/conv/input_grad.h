// SPDX-License-Identifier: Apache-2.0
// input_grad.h - the gradient of a convolution by its image, which is also ConvTranspose: x (N, C, d...) takes the place of dy,
// w (C, O / groups, k...) has a filter for each of its channels, and there may be a bias.
#pragma once

#include "conv/column_products.h"

namespace tenon::opencl {

/// Of dx (output 0), the filters (input 1) and dy (input 0).
inline ConvTerms terms_of_input_grad(const sdk::Call& call) {
  return {call, call.outputs[0], call.inputs[1], call.inputs[0]};
}

inline std::size_t input_grad_scratch(const sdk::Call& call) {
  return column_bytes(terms_of_input_grad(call), sdk::size_of(call.inputs[0].dtype));
}

template <class T>
void input_grad(const sdk::Call& call) {
  const ConvTerms terms = terms_of_input_grad(call);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  if (by_products(terms)) return input_grad_by_products<T>(call, terms);
  Launch launch(call, sources::conv, "conv_input_grad", types<T>());
  launch.value(terms.windows).value(terms.groups).value(count).out(call, 0).in(call, 0).in(call, 1).in(call, 2).over(count);
}

}  // namespace tenon::opencl
