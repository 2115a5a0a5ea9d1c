// SPDX-License-Identifier: Apache-2.0
// loader/vendor_ops.h - the ops of a backend's vendor.
#pragma once

#include <span>
#include <string>

#include <tenon/backend.h>

namespace tenon::loader {

/// The declared ops of a complete answer (loader/complete.h).
inline std::span<const tenon_vendor_op> vendor_ops_of(const tenon_backend_info& info) {
  return {info.vendor_ops, info.vendor_op_count};
}

/// "com.example.SoftClip-1" for an id of this backend; "op 1234" for one that it does not declare.
std::string vendor_op_name(const tenon_backend_info& info, tenon_op id, std::uint32_t version);

/// Throws a LoadError unless each op has an id of its own, a domain, name and version of its own, a schema and a rule for shapes.
void check_vendor_ops(std::span<const tenon_vendor_op> ops);

}  // namespace tenon::loader
