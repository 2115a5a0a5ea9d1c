// SPDX-License-Identifier: Apache-2.0
// c/json.h - reports of the C API as JSON.
#pragma once

#include <string>

#include "c/object.h"
#include "yaml/json.h"

namespace tenon::c {

/// The text of a report, which the caller frees.
inline char* new_json(const Json& value) {
  return new_text(json_text(value));
}

inline Json json_of(const Shape& shape) {
  return Json(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

}  // namespace tenon::c
