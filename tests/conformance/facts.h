// facts.h - what a failed case says beside its sentence, field by field.
#pragma once

#include <string>
#include <utility>

namespace tenon::conformance {

/// What is known of a failure beside its sentence. Empty: it has none of that.
struct Facts {
  std::string shapes;   ///< of the operands: "f32(8,10); f32(10)"
  std::string strides;  ///< of operands that are not dense: "(20,2); dense"
  std::string element;  ///< the index of the first wrong one: "(0,3)"
  std::string wanted, got;
  std::string error, bound;  ///< how far off it is, and how far it may be
};
/// Their names in reports, in the order in which they are read.
inline constexpr std::pair<const char*, std::string Facts::*> fact_fields[] = {
    {"shapes", &Facts::shapes}, {"strides", &Facts::strides}, {"element", &Facts::element}, {"wanted", &Facts::wanted},
    {"got", &Facts::got},       {"error", &Facts::error},     {"bound", &Facts::bound},
};

}  // namespace tenon::conformance
