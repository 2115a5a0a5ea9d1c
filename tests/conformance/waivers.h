// SPDX-License-Identifier: Apache-2.0
// waivers.h - conformance.yaml next to a backend: which cases it is meant to pass, what it does not support and what it does not yet get
// right.
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

/// Three lists, all optional: `supported` grows, `unsupported` stays, `expected_failures` shrinks.
struct Waivers {
  std::vector<std::string> supported;  ///< globs over case names: what none of them matches may be refused. Empty: everything is meant
  std::vector<Waiver> unsupported;
  std::vector<Waiver> expected_failures;

  /// Reads the file; without a file there are no waivers. Errors: tenon::Error with file and line for an unknown key or a missing reason.
  static Waivers read(const std::filesystem::path& file);
  /// Turns waived results into "excluded", and passes of cases that are expected to fail into failures.
  void apply(Result& result) const;
  /// The globs of all lists that match none of these results.
  std::vector<std::string> matching_none(const std::vector<Result>& results) const;
};

}  // namespace tenon::conformance
