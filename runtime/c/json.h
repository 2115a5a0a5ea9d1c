// SPDX-License-Identifier: Apache-2.0
// c/json.h - reports of the C API as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "c/object.h"

namespace tenon::c {

/// Maps keep the order in which their keys were set.
using Json = nlohmann::ordered_json;

/// The text of a report, which the caller frees. Bytes that are no UTF-8, as in names of files, become U+FFFD.
inline char* new_json(const Json& value) {
  return new_text(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

inline Json json_of(const Shape& shape) {
  return Json(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

}  // namespace tenon::c
