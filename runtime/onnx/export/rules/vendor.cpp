// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/vendor.cpp - ops of vendors, as nodes of the vendor's domain.
#include "graph/vendor_ops.h"
#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

AttributeRecord record(const tenon_attribute& given) {
  const auto list = [&]<class T>(const T*) {
    return std::vector<T>(static_cast<const T*>(given.data), static_cast<const T*>(given.data) + given.count);
  };
  switch (given.type) {
    case TENON_ATTRIBUTE_INTEGER:
      return integer(given.name, *static_cast<const std::int64_t*>(given.data));
    case TENON_ATTRIBUTE_FLOAT:
      return number(given.name, *static_cast<const double*>(given.data));
    case TENON_ATTRIBUTE_STRING:
      return text(given.name, {static_cast<const char*>(given.data), given.count});
    case TENON_ATTRIBUTE_INTEGERS:
      return integers(given.name, list(static_cast<const std::int64_t*>(nullptr)));
    default: {
      AttributeRecord floats = attribute(given.name, AttributeRecord::Type::floats);
      for (const double value : list(static_cast<const double*>(nullptr))) floats.numbers.push_back(static_cast<float>(value));
      return floats;
    }
  }
}

}  // namespace

void apply_vendor_op(Node& node) {
  const graph::VendorOp& op = *graph::find_vendor_op(node.info().op);
  const auto& attributes = node.attributes<tenon_attributes_vendor>();
  std::vector<AttributeRecord> records;
  for (std::uint32_t i = 0; i < attributes.count; ++i) records.push_back(record(attributes.attributes[i]));
  std::vector<DType> results;
  for (std::size_t i = 0; i < node.output_count(); ++i) results.push_back(node.output_dtype(i));
  const std::vector<Term> terms = node.op_with_results({op.name, op.domain, op.version}, node.inputs(), records, results);
  for (std::size_t i = 0; i < terms.size(); ++i) node.output(i, terms[i]);
}

}  // namespace tenon::onnx::exporting
