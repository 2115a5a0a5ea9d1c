// train/initializers.h - how parameters start.
#pragma once

#include <cstdint>

#include <tenon/context.h>

#include "train/builder.h"

namespace tenon::train {

/// A dense tensor on `device`, of the spec's dtype and shape. Random kinds run RandomUniform or RandomNormal there with key (seed, block)
/// and the given stream: the same bits on every backend. Shapes   rank 1 counts as n1 = 1, n2 = shape[0]; a rank 0 parameter with a Glorot,
/// He or LeCun start is an error. `fan_in` is what He,
///          LeCun and fan_in_uniform use: that of the layer's kernel, since a bias does not know it.
Tensor initialize(const Context& context, const Device& device, const ParameterSpec& spec, std::uint64_t seed, std::uint32_t stream);

}  // namespace tenon::train
