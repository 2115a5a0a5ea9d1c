// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules.h - the table of rules. Each file of export/rules/ defines one list for a family of ops and is named here once.
#pragma once

#include <vector>

#include <tenon/backend.h>

#include "onnx/export/node.h"

namespace tenon::onnx::exporting {

/// How a Tenon op becomes nodes of ONNX.
struct Rule {
  tenon_op op;
  void (*apply)(Node& node);
};

// TENON_ONNX_EXPORT_RULES(family): export/rules/<family>.cpp defines `const std::vector<Rule>& <family>_rules()`.
#define TENON_ONNX_EXPORT_RULES(X) \
  X(elementwise)                   \
  X(reduce)                        \
  X(shape)                         \
  X(index)                         \
  X(products)                      \
  X(window)                        \
  X(resize)                        \
  X(normalization)                 \
  X(quantize)                      \
  X(recurrent)                     \
  X(attention)

#define TENON_ONNX_DECLARE(family) const std::vector<Rule>& family##_rules();
TENON_ONNX_EXPORT_RULES(TENON_ONNX_DECLARE)
#undef TENON_ONNX_DECLARE

/// The rule of an op. NULL: there is none.
const Rule* find_rule(tenon_op op);
/// Why an op is not exported. NULL: it has a rule.
const char* refusal_of(tenon_op op);
/// Adds a vendor's op as a node of the vendor's domain.
void apply_vendor_op(Node& node);

/// One ONNX node of the same name, with all operands and no attributes.
void apply_same_op(Node& node);

}  // namespace tenon::onnx::exporting
