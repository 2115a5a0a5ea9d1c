// SPDX-License-Identifier: Apache-2.0
// line_norm.h - layer and root-mean-square normalisation of lines of n adjacent elements, each by its own statistics.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// How a line is normalised: x' = (x - mean) inverse_std, or, not centred, x' = x inverse_rms.
enum class Centre { mean, zero };

/// y = x' scale + bias for every line, scale and bias (n) or NULL. Statistics go to `mean` and `rstd`, one per line, unless NULL.
template <class T>
void normalise_lines(const sdk::Call& call, Centre centre, const T* x, const T* scale, const T* bias, T* y, T* mean, T* rstd);

/// With g = dy scale: dx = rstd (g - mean(g) - x' mean(g x')), without mean(g) if not centred. dscale = sum(dy x') and dbias = sum(dy)
/// over the lines, unless NULL. `scratch` has line_gradient_scratch bytes.
template <class T>
void line_gradient(const sdk::Call& call, Centre centre, const T* dy, const T* x, const T* scale, const T* mean, const T* rstd, T* dx,
                   T* dscale, T* dbias);

/// The scratch bytes for operand x, whose lines begin at the axis of tenon_attributes_layer_norm.
std::size_t line_gradient_scratch(const sdk::Call& call, std::uint32_t x);

}  // namespace tenon::openblas
