// SPDX-License-Identifier: Apache-2.0
#include "onnx/rules.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tenon::onnx {
namespace {

/// Rules by domain and operator, oldest first.
using Table = std::map<std::pair<std::string_view, std::string_view>, std::vector<const Rule*>>;

Table make_table() {
  Table table;
  const auto add = [&](std::string_view domain, const std::vector<Rule>& rules) {
    for (const Rule& rule : rules) table[{domain, rule.op}].push_back(&rule);
  };
#define TENON_ONNX_ADD(family, domain) add(domain, family##_rules());
  TENON_ONNX_RULES(TENON_ONNX_ADD)
#undef TENON_ONNX_ADD
  for (auto& [op, rules] : table) {
    std::ranges::sort(rules, {}, [](const Rule* rule) { return rule->since; });
  }
  return table;
}

}  // namespace

const Rule* find_rule(std::string_view domain, std::string_view op, std::int64_t opset) {
  static const Table table = make_table();
  const auto found = table.find({domain, op});
  if (found == table.end()) return nullptr;
  const Rule* newest = nullptr;
  for (const Rule* rule : found->second) {
    if (rule->since <= opset) newest = rule;
  }
  return newest;
}

}  // namespace tenon::onnx
