// SPDX-License-Identifier: Apache-2.0
// loader/self_check.h - checks of a plugin's promises that can be observed: a pure query, an unchanged process state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tenon/backend.h>

namespace tenon::loader {

/// The calling thread's floating-point environment, status flags aside.
class FloatingPoint {
 public:
  static FloatingPoint current();
  /// Sets it as the calling thread's environment.
  void restore() const;
  /// The change from `before` to this, as a predicate: "sets flush-to-zero for the process ..."; nothing if they are equal.
  std::optional<std::string> change_since(const FloatingPoint& before) const;

 private:
  int rounding_ = 0;
  std::uint32_t control_ = 0;  ///< x86: MXCSR, AArch64: FPCR; control bits without the status flags
};

/// The first field in which two complete answers differ; nothing if they are equal. Strings are compared by their characters.
std::optional<std::string> difference(const tenon_backend_info& first, const tenon_backend_info& second);

}  // namespace tenon::loader
