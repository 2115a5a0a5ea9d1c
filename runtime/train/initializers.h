// train/initializers.h - how parameters start.
#pragma once

#include <cstdint>

#include <tenon/context.h>
#include <tenon/definition.h>

namespace tenon::train {

/// A dense tensor on `device`. Random kinds run RandomUniform or RandomNormal there with key (seed, 0) and the given stream: the same bits
/// on every backend.
/// Shapes   rank 1 counts as n1 = 1, n2 = shape[0]; a rank 0 parameter with a Glorot, He or LeCun start is an error. `fan_in` is what
///          fan_in_uniform uses (the layer's kernel's), since a bias does not know it.
Tensor initialize(const Context& context, const Device& device, const Initializer& initializer, DType dtype, const Shape& shape,
                  std::int64_t fan_in, std::uint64_t seed, std::uint32_t stream);

}  // namespace tenon::train
