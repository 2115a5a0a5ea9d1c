// SPDX-License-Identifier: Apache-2.0
// memory.h - what the system would say to OpenBLAS: posix/ or windows/.
#pragma once

#include <cstddef>

namespace tenon::openblas_serial {

/// Whether the system has `size_bytes` of memory for OpenBLAS, asked for in the way in which OpenBLAS asks.
bool has_memory(std::size_t size_bytes);

}  // namespace tenon::openblas_serial
