// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/op_versions.h - ops in several versions: converts attributes of an older one to those
// of the newest, and back.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include <tenon/backend.h>

namespace tenon::sdk {

/// An op version that has a newer one: a line of tenon/older_ops.def.
struct OlderVersion {
  tenon_op op;
  std::uint32_t version;
  std::uint32_t newest;           ///< the version in ops.def
  std::uint32_t attributes_size;  ///< of this version
  std::uint32_t newest_size;      ///< of the version in ops.def, whose attributes begin with these
  void (*set_defaults)(void* newest_attributes);
};

inline constexpr std::size_t older_version_count = 0
#define TENON_OLDER_OP(name, version, attributes, newest_attributes, defaults, schema) +1
#include <tenon/older_ops.def>
#undef TENON_OLDER_OP
    ;
/// The lines of tenon/older_ops.def.
std::span<const OlderVersion> older_versions();
/// The line of one version; NULL for the newest and for an unknown version.
const OlderVersion* find_older(tenon_op op, std::uint32_t version, std::span<const OlderVersion> lines = older_versions());

/// A copy of an attribute struct, aligned.
using AttributeBytes = std::vector<std::uint64_t>;
/// Attributes of the older version as those of the newest: later attributes have their defaults.
AttributeBytes raised(const OlderVersion& older, const void* attributes);
/// Attributes of the newest version as those of the older; nothing if a later attribute does not
/// have its default.
std::optional<AttributeBytes> lowered(const OlderVersion& older, const void* newest_attributes);

}  // namespace tenon::sdk
