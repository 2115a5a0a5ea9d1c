// SPDX-License-Identifier: Apache-2.0
// max_pool.h - max pooling of channels-last images, and its gradient.
#pragma once

#include <cstddef>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

/// y = largest x of each window; indices = its index in x as (N, C, d...), if requested.
///
/// Shapes  x (N, d..., C), y and indices (N, windows..., C).
/// Dtypes  the first of equal elements wins, or the first NaN. Indices of f32 and bf16 are 32 bits wide until they are stored.
template <class T>
void max_pool(const sdk::Call& call);
/// Bytes of scratch memory.
std::size_t max_pool_scratch(const sdk::Call& call);
/// Why a max_pool is unsupported, or NULL.
const char* refuse_max_pool(const sdk::Call& call);

/// dx = 0, then dx[indices] += dy, in the order of dy. Sums of bf16 are rounded once.
///
/// Shapes   dy and indices (N, windows..., C), dx (N, d..., C); indices count elements of (N, C, d...).
/// Threads  each thread has its own channels of an image.
/// Errors   an index outside the image and channel of its dy.
template <class T>
void max_pool_grad(const sdk::Call& call);
/// Bytes of scratch memory.
std::size_t max_pool_grad_scratch(const sdk::Call& call);

}  // namespace tenon::openblas
