// SPDX-License-Identifier: Apache-2.0
// c/onnx.h - ONNX models in the C API.
#pragma once

#include <tenon/onnx.h>

#include "c/object.h"

struct TenonOnnx final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::onnx;
  TenonOnnx(tenon::onnx::Model model, const tenon::Context& on) : Object(kind_of), value(std::move(model)), context(on) {}
  tenon::onnx::Model value;
  tenon::Context context;
};

namespace tenon::c {

/// Tensors by the names of inputs. Errors  a name that is given twice.
NamedTensors named(const char* const* names, const TenonTensor* const* inputs, std::uint64_t count);

}  // namespace tenon::c
