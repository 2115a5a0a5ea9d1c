// SPDX-License-Identifier: Apache-2.0
// amx_permission.h - the tile registers of Intel AMX have 8 KiB of state per thread, which systems save only for processes that ask for it:
// posix/ or windows/.
#pragma once

namespace tenon::openblas {

/// Asks for the tile registers. Whether the process may use them.
bool request_amx_tiles();

}  // namespace tenon::openblas
