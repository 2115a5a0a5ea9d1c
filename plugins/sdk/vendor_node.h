// SPDX-License-Identifier: Apache-2.0
// vendor_node.h - nodes of vendors' ops: copies their attributes, and checks them and the operands against the op's declaration.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "graph_model.h"

namespace tenon::sdk {

/// What a tenon_attributes_vendor points to.
struct VendorAttributeBlock {
  std::vector<tenon_attribute> attributes;
  std::deque<std::string> names;
  std::deque<std::vector<std::uint64_t>> data;
};

/// Copies a tenon_attributes_vendor of `size` bytes, with what it points to, which `blocks` owns. Returns why it cannot be read.
Diagnostic copy_vendor_attributes(const void* attributes, std::uint32_t size, std::vector<std::uint64_t>& out_struct,
                                  std::vector<std::shared_ptr<const VendorAttributeBlock>>& blocks);

/// Why a node does not match the declaration of its op, which its row has: an attribute, an operand or a result is missing or another than
/// the schema and `infer` say. reason is TENON_REASON_NONE if it matches.
Diagnostic check_vendor_node(const GraphModel& graph, const Node& node);

}  // namespace tenon::sdk
