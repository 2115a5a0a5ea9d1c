// SPDX-License-Identifier: Apache-2.0
// facts.h - the fields that a failed case reports in addition to its message.
#pragma once

#include <string>
#include <utility>

namespace tenon::conformance {

/// Facts about a failure. Fields that do not apply are empty.
struct Facts {
  std::string shapes;   ///< the operands: "f32(8,10); f32(10)"
  std::string strides;  ///< strides of operands that are not dense: "(20,2); dense"
  std::string element;  ///< the index of the first wrong element: "(0,3)"
  std::string expected, got;
  std::string error, bound;  ///< the error and the largest allowed error
};
/// The names of the facts in reports, in the order of display.
inline constexpr std::pair<const char*, std::string Facts::*> fact_fields[] = {
    {"shapes", &Facts::shapes}, {"strides", &Facts::strides}, {"element", &Facts::element}, {"expected", &Facts::expected},
    {"got", &Facts::got},       {"error", &Facts::error},     {"bound", &Facts::bound},
};

}  // namespace tenon::conformance
