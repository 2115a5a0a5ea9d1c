// SPDX-License-Identifier: Apache-2.0
// waivers.h - conformance.yaml next to a backend: what it does not support and what it does not yet get right, each with its reason.
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

  /// Reads the file; without a file there are no waivers. Errors: tenon::Error with file and line for an unknown key or a missing reason.
  static Waivers read(const std::filesystem::path& file);
  /// Turns waived results into "excluded", and passes of cases that are expected to fail into failures.
  void apply(Result& result) const;
  /// The globs of both lists that match none of these results.
  std::vector<std::string> matching_none(const std::vector<Result>& results) const;
};

}  // namespace tenon::conformance
