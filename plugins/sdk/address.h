// SPDX-License-Identifier: Apache-2.0
// address.h - addresses as the ABI passes them, in 64 bits on every system.
#pragma once

#include <cstdint>

namespace tenon::sdk {

/// The pointer to an address that the host can read and write, or only passes on to kernels.
inline void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace tenon::sdk
