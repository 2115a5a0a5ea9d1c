// SPDX-License-Identifier: Apache-2.0
// onnx_left_out.h - ONNX's tests that are not run. docs/onnx.md has this list as a table, which a test compares.
#pragma once

#include <span>
#include <string_view>

namespace tenon::conformance {

struct LeftOut {
  const char* test;    ///< glob over the names of tests: "node/test_string_*"
  const char* reason;  ///< a sentence: what the tests need that Tenon does not have
};

/// All of them, in the order of docs/onnx.md.
std::span<const LeftOut> onnx_left_out();
/// The reason why a test is not run; null: it is.
const char* why_left_out(std::string_view test);

}  // namespace tenon::conformance
