// SPDX-License-Identifier: Apache-2.0
// onnx/rules.h - the table of rules. Each file of rules/ defines one list for a family of ops of one domain and is named here once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "onnx/node.h"

namespace tenon::onnx {

// TENON_ONNX_RULES(family, domain): rules/<family>.cpp defines `const std::vector<Rule>& <family>_rules()`.
#define TENON_ONNX_RULES(X)     \
  X(elementwise, "")            \
  X(compare, "")                \
  X(activation, "")             \
  X(reduce, "")                 \
  X(constant, "")               \
  X(shape, "")                  \
  X(index, "")                  \
  X(resize, "")                 \
  X(matmul, "")                 \
  X(window, "")                 \
  X(normalization, "")          \
  X(softmax, "")                \
  X(recurrent, "")              \
  X(attention, "")              \
  X(quantize, "")               \
  X(signal, "")                 \
  X(random, "")                 \
  X(detection, "")              \
  X(control, "")                \
  X(sequence, "")               \
  X(ml, "ai.onnx.ml")           \
  X(microsoft, "com.microsoft") \
  X(microsoft_quantize, "com.microsoft")

#define TENON_ONNX_DECLARE(family, domain) const std::vector<Rule>& family##_rules();
TENON_ONNX_RULES(TENON_ONNX_DECLARE)
#undef TENON_ONNX_DECLARE

/// The newest version of ai.onnx whose operators the rules were written for.
inline constexpr std::int64_t newest_opset = 28;

/// The rule of an op at a version of its domain: the one with the largest `since` that is not larger. NULL: there is none.
const Rule* find_rule(std::string_view domain, std::string_view op, std::int64_t opset);
/// Why an op is refused for good; NULL: it is not one of those.
const char* refusal_of(std::string_view domain, std::string_view op);

}  // namespace tenon::onnx
