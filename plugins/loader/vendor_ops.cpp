// SPDX-License-Identifier: Apache-2.0
#include "loader/vendor_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include <tenon/sdk/error.h>
#include <tenon/sdk/vendor_schema.h>

#include "loader/load_error.h"

namespace tenon::loader {
namespace {

const char* text_of(const char* text) {
  return text == nullptr ? "NULL" : text;
}

/// "com.example.SoftClip-1", also of one whose names are not valid.
std::string shown(const tenon_vendor_op& op) {
  return fmt::format("{}.{}-{}", text_of(op.domain), text_of(op.name), op.version);
}

[[noreturn]] void refuse(const tenon_vendor_op& op, const std::string& reason) {
  throw LoadError(TENON_INCOMPATIBLE, fmt::format("its op {}: {}", shown(op), reason),
                  "correct its line in vendor_ops of the query, or report this to the plugin's vendor");
}

void check_schema(const tenon_vendor_op& op) {
  if (op.schema == nullptr) refuse(op, "expected a schema, got NULL");
  try {
    sdk::VendorSchema::parse(op.schema);
  } catch (const sdk::Error& error) {
    refuse(op, fmt::format("its schema '{}' cannot be read: {}", op.schema, error.what()));
  }
}

}  // namespace

std::string vendor_op_name(const tenon_backend_info& info, tenon_op id, std::uint32_t version) {
  const auto ops = vendor_ops_of(info);
  const auto found = std::find_if(ops.begin(), ops.end(), [&](const tenon_vendor_op& op) { return op.id == id && op.version == version; });
  return found == ops.end() ? fmt::format("op {}", id) : shown(*found);
}

void check_vendor_ops(std::span<const tenon_vendor_op> ops) {
  std::set<tenon_op> ids;
  std::set<std::tuple<std::string, std::string, std::uint32_t>> names;
  for (const tenon_vendor_op& op : ops) {
    if (op.domain == nullptr || !sdk::is_vendor_domain(op.domain)) {
      refuse(op, "expected a domain of lower-case words joined by dots, such as com.example");
    }
    if (op.name == nullptr || !sdk::is_vendor_op_name(op.name)) {
      refuse(op, "expected a name of letters, digits and '_' that begins with a letter");
    }
    if (op.id < TENON_OP_VENDOR)
      refuse(op, fmt::format("expected an id of at least {} (TENON_OP_VENDOR), got {}", +TENON_OP_VENDOR, op.id));
    if (op.version == 0) refuse(op, "expected a version of at least 1, got 0");
    if (!ids.insert(op.id).second) refuse(op, fmt::format("expected an id of its own, got {}, which another of its ops has", op.id));
    if (!names.emplace(op.domain, op.name, op.version).second) refuse(op, "expected each version of an op once, got it twice");
    if (op.infer == nullptr) refuse(op, "expected a function in `infer`, got NULL");
    check_schema(op);
  }
}

}  // namespace tenon::loader
