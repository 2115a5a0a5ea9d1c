// waivers.h - conformance.yaml beside a backend: what it does not offer and what it does not yet get right, each with its reason.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance.h"

namespace tenon::conformance {

struct Waiver {
  std::string match;  ///< glob over case names
  std::string reason;
};

/// Two lists: `unsupported` stays, `expected_failures` shrinks.
struct Waivers {
  std::vector<Waiver> unsupported;
  std::vector<Waiver> expected_failures;

  /// Reads the file; no file, no waivers. Errors: tenon::Error with file and line for an unknown key or an entry without a reason.
  static Waivers read(const std::filesystem::path& file);
  /// Turns what is waived into "excluded", and a pass that was expected to fail into a failure.
  void apply(Result& result) const;
  /// The globs of both lists that fit none of these results.
  std::vector<std::string> matching_none(const std::vector<Result>& results) const;
};

}  // namespace tenon::conformance
