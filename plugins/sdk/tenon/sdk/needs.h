// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/needs.h - bits of `needs`, which a struct's sender sets so that nobody ignores what they
// ask for.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include <tenon/sdk/error.h>

namespace tenon::sdk {

/// Why a backend refuses a struct with these bits, of which it knows none; empty: it takes it.
inline std::string unknown_needs(std::uint32_t needs) {
  if (needs == 0) return {};
  char text[96];
  std::snprintf(text, sizeof text, "expected no bits in `needs`, got 0x%x: this version of the backend knows none", needs);
  return text;
}

/// Throws UNSUPPORTED for bits that the backend does not know. `slot` is the function that was
/// called.
inline void check_needs(const char* slot, std::uint32_t needs) {
  if (needs != 0) throw Error(TENON_UNSUPPORTED, std::string(slot) + ": " + unknown_needs(needs));
}

}  // namespace tenon::sdk
