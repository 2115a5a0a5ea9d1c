// SPDX-License-Identifier: Apache-2.0
// A crash as a stray pointer causes it, on every system.
#pragma once

#include <cstdint>

namespace tenon::test {

inline void crash() {
  const volatile std::uintptr_t nowhere = 64;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

/// How the kit reports it begins.
inline constexpr const char* crash_report = "the process died of ";

}  // namespace tenon::test
