// SPDX-License-Identifier: Apache-2.0
// backend_under_test.h - a backend under test with its oracle, in the process that runs cases.
#pragma once

#include <memory>
#include <string>

#include "case.h"

namespace tenon::conformance {

/// The outcome of one case, before the backend's waivers are applied.
struct Verdict {
  Class outcome = Class::not_run;
  std::string text = {};
  Facts facts = {};
  double seconds = 0;
};

/// The backend that `options` names. Errors: tenon::Error for a file that does not exist.
Source under_test(const Options& options);

/// A loaded backend, and the oracle unless the backend is the oracle.
class BackendUnderTest {
 public:
  /// Errors  tenon::Error for a backend that cannot be loaded, WrongUse for an oracle.
  explicit BackendUnderTest(const Options& options);
  Verdict run(const Case& test, std::uint64_t seed) const;
  std::string backend() const { return device_->backend().name(); }
  std::string version() const { return device_->info().version; }
  std::string device() const;
  /// Whether the device is lost, and every later call on it would fail.
  bool device_lost() const;

 private:
  std::unique_ptr<Device> device_, oracle_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace tenon::conformance
