// SPDX-License-Identifier: Apache-2.0
// graph/vendor_ops.h - the ops of vendors that the backends of this process declare.
//
// A backend's ids are its own. The process gives each domain, name and version an id that graphs use; nodes get the backend's id when they
// are lowered for it (exec/vendor_ops.h). Ids and schemas stay for the life of the process, rules for shapes as long as a backend that
// declares the op is loaded.
//
// Threads  any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/backend.h>
#include <tenon/graph.h>

#include "graph/op.h"

namespace tenon::graph {

inline bool is_vendor_op(tenon_op op) {
  return op >= TENON_OP_VENDOR;
}

/// One version of an op. Lives as long as the process; only its declarations change.
struct VendorOp {
  std::string domain, name;
  std::string full_name;  ///< "com.example.SoftClip"
  std::uint32_t version = 0;
  std::string schema;  ///< "x:T bias:T? -> y:T; limit": without types and defaults of attributes
  OpEntry entry;
};

/// What a backend declares. While it lives the rules for shapes of its ops may be called, so it ends before the backend's library does.
/// Movable, not copyable.
class VendorOpDeclarations {
 public:
  VendorOpDeclarations() = default;
  VendorOpDeclarations(const std::string& backend, std::span<const tenon_vendor_op> ops);
  ~VendorOpDeclarations() { end(); }
  VendorOpDeclarations(VendorOpDeclarations&& other) noexcept;
  VendorOpDeclarations& operator=(VendorOpDeclarations&& other) noexcept;
  VendorOpDeclarations(const VendorOpDeclarations&) = delete;
  VendorOpDeclarations& operator=(const VendorOpDeclarations&) = delete;

  /// The backend's id of an op; nothing if it does not have the op.
  std::optional<tenon_op> own_id(tenon_op op) const;
  /// A sentence for each op that another schema was declared for before: the backend does not have it here.
  const std::vector<std::string>& conflicts() const { return conflicts_; }
  /// Ends the declarations; waits for calls of their rules.
  void end();

 private:
  std::uint64_t number_ = 0;              ///< of these declarations in the process; 0: none
  std::map<tenon_op, tenon_op> own_ids_;  ///< by the process's id
  std::vector<std::string> conflicts_;
};

/// The op of an id of this process. NULL: there is none.
const VendorOp* find_vendor_op(tenon_op op);
/// The op of a domain, a name and a version, 0 being the newest that a loaded backend has, or else the newest. NULL: there is none. For
/// readers of model files, too.
const VendorOp* find_vendor_op(std::string_view domain, std::string_view name, std::uint32_t version = 0);
/// The names of the loaded backends that have the op.
std::vector<std::string> backends_with(tenon_op op);

/// The attributes with what they point to in memory that lives as long as the process, the same for equal attributes.
Attributes interned(const tenon_attributes_vendor& attributes);
/// "limit=3 axes=(0,1)": " name=value" for each attribute.
std::string vendor_attributes_str(const tenon_attributes_vendor& attributes);

}  // namespace tenon::graph
