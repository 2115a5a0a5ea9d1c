// SPDX-License-Identifier: Apache-2.0
// onnx/rules/refusals.h - why ops are refused for good. refusal_of in rules.h looks in all domains.
#pragma once

#include <string_view>

namespace tenon::onnx {

/// For an op of com.microsoft; NULL: it is not refused.
const char* microsoft_refusal(std::string_view op);

}  // namespace tenon::onnx
