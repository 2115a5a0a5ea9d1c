// SPDX-License-Identifier: Apache-2.0
// testing.h - helpers of all unit tests.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/tenon.h>

#include "test_numbers.h"

namespace tenon::test {

/// Whether tests use reduced sizes: on the emulated GPU outside long runs, and with sanitizers.
inline bool small_sizes() {
  const char* size = std::getenv("TENON_TEST_SIZE");
  return size != nullptr && std::string_view(size) == "small";
}

/// The text of the Error that `body` throws; other exceptions propagate.
template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Check that what follows the text throws a tenon::Error with this text, or with this part of a text.
#define CHECK_ERROR(text, ...) CHECK(::tenon::test::message_of([&] { __VA_ARGS__; }) == (text))
#define CHECK_ERROR_CONTAINS(part, ...)                                                \
  {                                                                                    \
    const std::string text_of_error = ::tenon::test::message_of([&] { __VA_ARGS__; }); \
    CHECK_MESSAGE(::tenon::test::contains(text_of_error, part), text_of_error);        \
  }                                                                                    \
  static_assert(true)

/// A configuration that finds only the backends of this build.
inline Config test_config(const std::string& device = "reference:0") {
  Config config;
  config.backends.search = {TENON_BACKEND_DIRECTORY};
  config.device = device;
  config.threads = 2;
  config.logging.level = LogLevel::off;
  return config;
}

/// Fixtures: a context on a backend.
struct OnReference {
  const Context context{test_config()};
};
struct OnOpenblas {
  const Context context{test_config("openblas:0")};
};

inline std::vector<float> floats(const Tensor& t) {
  return t.to_host().to_vector<float>();
}

}  // namespace tenon::test
