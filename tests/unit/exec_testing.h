// SPDX-License-Identifier: Apache-2.0
// exec_testing.h - helpers of the executor tests.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tenon/tenon.h>

namespace tenon::test {

/// A configuration that finds only the backends of this build.
inline Config test_config(const std::string& device = "reference:0") {
  Config config;
  config.backends.search = {TENON_BACKEND_DIRECTORY};
  config.device = device;
  config.threads = 2;
  config.logging.level = LogLevel::off;
  return config;
}

/// The text of the Error that `body` throws; empty if it throws none.
template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::vector<float> floats(const Tensor& t) {
  const Tensor host = t.to_host();
  return {host.data<float>(), host.data<float>() + host.count()};
}

}  // namespace tenon::test
