// SPDX-License-Identifier: Apache-2.0
// average_pool.h - average pooling of channels-last images, and its gradient.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = sum of x over each window, divided by the number of the window's elements in the padded image, or in x.
///
/// Shapes  x (N, d..., C), y (N, windows..., C).
template <class T>
void average_pool(const sdk::Call& call);

/// dx = sum of dy over the windows that contain the element, each divided by the divisor of its mean.
///
/// Shapes  dy (N, windows..., C), dx (N, d..., C).
template <class T>
void average_pool_grad(const sdk::Call& call);
/// Bytes of scratch memory.
std::size_t average_pool_grad_scratch(const sdk::Call& call);

}  // namespace tenon::openblas
