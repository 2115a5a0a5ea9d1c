// SPDX-License-Identifier: Apache-2.0
// exec/vendor_ops.h - nodes of vendors' ops for one backend.
#pragma once

#include <string>

#include "exec/device_state.h"
#include "exec/lower.h"

namespace tenon::exec {

/// Puts the backend's own ids into the nodes of vendors' ops. Those of another vendor keep the process's, which the backend is not asked
/// about: see why_not_declared.
void use_own_ids(const LoadedBackend& loaded, AbiGraph& lowered);

/// Why a backend is not asked about a node: it does not declare the vendor's op. Empty: it is asked.
std::string why_not_declared(const LoadedBackend& loaded, tenon_op op);

}  // namespace tenon::exec
