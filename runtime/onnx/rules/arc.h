// SPDX-License-Identifier: Apache-2.0
// onnx/rules/arc.h - inverse trigonometric functions.
#pragma once

#include <tenon/graph.h>

namespace tenon::onnx {

/// The arc tangent of x, in [-pi/2, pi/2], to a few units in the last place of the dtype (f32 for narrower ones).
Value atan_of(Value x);

}  // namespace tenon::onnx
