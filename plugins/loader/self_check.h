// loader/self_check.h - whether a plugin keeps the promises that can be seen from outside: a pure query, an untouched process.
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
  /// Makes it the calling thread's again.
  void restore() const;
  /// What changed from `before` to this, as a sentence without subject: "sets flush-to-zero for the process ..."; nothing if nothing did.
  std::optional<std::string> change_since(const FloatingPoint& before) const;

 private:
  int rounding_ = 0;
  std::uint32_t control_ = 0;  ///< x86: MXCSR, AArch64: FPCR; bits that say how, not what happened
};

/// Threads of this process; nothing where that cannot be told.
std::optional<int> count_threads();

/// The first field in which two complete answers differ; nothing if they say the same. Strings are compared by their characters.
std::optional<std::string> difference(const tenon_backend_info& first, const tenon_backend_info& second);

}  // namespace tenon::loader
