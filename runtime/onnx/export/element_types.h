// SPDX-License-Identifier: Apache-2.0
// onnx/export/element_types.h - which ONNX operators lack a floating type that Tenon's ops have.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/dtype.h>

namespace tenon::onnx::exporting {

/// Whether an operator of ai.onnx takes elements of this floating dtype at this opset, which is 17 or larger. True for other dtypes and
/// operators that are not listed.
/// Source  the type constraints of Operators.md of ONNX 1.23, for the operators that the exporter writes.
bool takes(std::string_view op, DType dtype, std::int64_t opset);

}  // namespace tenon::onnx::exporting
