// SPDX-License-Identifier: Apache-2.0
// sanitizers.h - tells AddressSanitizer about every stack switch.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define TENON_EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_EMULATION_ASAN 1
#endif
#endif
#ifdef TENON_EMULATION_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace tenon::emulation {

#ifdef TENON_EMULATION_ASAN
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

struct StackBounds {
  const void* bottom = nullptr;
  std::size_t size_bytes = 0;
};

/// Call before a switch; pass the result to arrived_from once control is back.
inline void* leaving_for([[maybe_unused]] StackBounds stack) {
  void* own = nullptr;
#ifdef TENON_EMULATION_ASAN
  __sanitizer_start_switch_fiber(&own, stack.bottom, stack.size_bytes);
#endif
  return own;
}
/// Call first after a switch, with NULL on a new stack; returns the stack that control came from.
inline StackBounds arrived_from([[maybe_unused]] void* own) {
  StackBounds from;
#ifdef TENON_EMULATION_ASAN
  __sanitizer_finish_switch_fiber(own, &from.bottom, &from.size_bytes);
#endif
  return from;
}

}  // namespace tenon::emulation
