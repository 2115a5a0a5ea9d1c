// SPDX-License-Identifier: Apache-2.0
// yaml/json.h - JSON values and their text. Parser and serialiser are compiled once, in json.cpp: they take longer than most sources.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace tenon {

/// Maps keep the order in which their keys were set.
using Json = nlohmann::ordered_json;

/// The text on one line, or with `indent` spaces for each level. Bytes that are no UTF-8, as in names of files, become U+FFFD.
std::string json_text(const Json& value, int indent = -1);
/// The value of a text.
/// Errors  Json::exception with the position.
Json parse_json(std::string_view text);
/// The same without errors: a discarded value (Json::is_discarded) for a text that is no JSON.
Json try_parse_json(std::string_view text);

}  // namespace tenon
