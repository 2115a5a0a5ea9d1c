// SPDX-License-Identifier: Apache-2.0
#include "yaml/json.h"

namespace tenon {

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json parse_json(std::string_view text) {
  return Json::parse(text.begin(), text.end());
}

Json try_parse_json(std::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace tenon
