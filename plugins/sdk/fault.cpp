// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/fault.h>

namespace tenon::sdk {
namespace {

const char* stem_of(tenon_op op) {
  switch (op) {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  case id:                                                                                            \
    return #stem;
#include <tenon/ops.def>
#undef TENON_OP
    default:
      return "kernel";
  }
}

}  // namespace

std::string text_of(const FaultRecord& record) {
  const std::string op = stem_of(record.op);
  if (record.kind == FaultKind::zero_divisor) return op + ": an integer divided by zero; expected divisors other than 0";
  const bool is_label = record.kind == FaultKind::label;
  return op + (is_label ? ": label " : ": index ") + std::to_string(record.value) + (is_label ? " at index " : " at position ") +
         std::to_string(record.position) + " is out of range [" + std::to_string(record.low) + ", " + std::to_string(record.high) + ")";
}

}  // namespace tenon::sdk
