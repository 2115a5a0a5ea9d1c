// SPDX-License-Identifier: Apache-2.0
// c/run.h - cancellation and options of runs in the C API.
#pragma once

#include <stop_token>

#include <tenon/run_options.h>

#include "c/object.h"

struct TenonCancellation final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::cancellation;
  TenonCancellation() : Object(kind_of) {}
  std::stop_source source;
};

namespace tenon::c {

RunOptions run_options(const TenonRunOptions* options);

}  // namespace tenon::c
