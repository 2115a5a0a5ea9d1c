// SPDX-License-Identifier: Apache-2.0
// train/program/initializers.h - initial values of parameters.
#pragma once

#include <cstdint>

#include <tenon/context.h>

#include "train/program/builder.h"

namespace tenon::train {

/// A dense tensor on `device`, of the spec's dtype and shape; if the spec has `initial`, that tensor, which is on the host. Random kinds
/// run RandomUniform or RandomNormal there with key (seed, block) and the given stream: the same bits on every backend. He, LeCun and
/// fan_in_uniform use the `fan_in` of the spec, which for a bias is that of the layer's kernel.
///
/// Shapes  rank 1 counts as n1 = 1, n2 = shape[0].
/// Errors  a parameter of rank 0 with a Glorot, He or LeCun initializer.
Tensor initialize(const Context& context, const Device& device, const ParameterSpec& spec, std::uint64_t seed, std::uint32_t stream);

}  // namespace tenon::train
