// SPDX-License-Identifier: Apache-2.0
// onnx/rules/compare.cpp - comparisons, logic and selection.
#include <limits>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/broadcast.h"
#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

void is_inf(Node& node) {
  const Value x = node.input(0);
  const bool negative = node.flag("detect_negative", true), positive = node.flag("detect_positive", true);
  if (negative && positive) return node.output(0, ops::is_inf(x));
  if (!negative && !positive) return node.output(0, ops::less(x, x));  // false for each element
  const double infinity = std::numeric_limits<double>::infinity();
  node.output(0, ops::equal(x, constant_like(x, negative ? -infinity : infinity)));
}

}  // namespace

const std::vector<Rule>& compare_rules() {
  static const std::vector<Rule> rules = {
      {"Equal", 1, legacy_binary<ops::equal>},
      {"Equal", 7, binary<ops::equal>},
      {"Less", 1, legacy_binary<ops::less>},
      {"Less", 7, binary<ops::less>},
      {"LessOrEqual", 12, binary<ops::less_equal>},
      {"Greater", 1, legacy_binary<ops::greater>},
      {"Greater", 7, binary<ops::greater>},
      {"GreaterOrEqual", 12, binary<ops::greater_equal>},
      {"And", 1, legacy_binary<ops::logical_and>},
      {"And", 7, binary<ops::logical_and>},
      {"Or", 1, legacy_binary<ops::logical_or>},
      {"Or", 7, binary<ops::logical_or>},
      {"Xor", 1, legacy_binary<ops::logical_xor>},
      {"Xor", 7, binary<ops::logical_xor>},
      {"Not", 1, unary<ops::logical_not>},
      {"IsNaN", 9, unary<ops::is_nan>},
      {"IsInf", 10, is_inf},
      {"Where", 9, [](Node& node) { node.output(0, ops::where(node.input(0), node.input(1), node.input(2))); }},
  };
  return rules;
}

}  // namespace tenon::onnx
