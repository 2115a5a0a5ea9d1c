// SPDX-License-Identifier: Apache-2.0
#include "child_request.h"

#include <nlohmann/json.hpp>

#include <tenon/error.h>

#include "platform/path.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, std::filesystem::path Options::*> path_fields[] = {
    {"plugin", &Options::plugin},
    {"backend_directory", &Options::backend_directory},
    {"models", &Options::models},
    {"data", &Options::data},
};
constexpr std::pair<const char*, std::string Options::*> text_fields[] = {
    {"backend", &Options::backend}, {"oracle", &Options::oracle}, {"profile", &Options::profile},
    {"filter", &Options::filter},   {"family", &Options::family},
};

}  // namespace

ChildRequest request_for(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down) {
  ChildRequest request{.options = options, .chunk = chunk, .shuts_down = shuts_down};
  if (chunk.begin == chunk.end) return request;
  request.first = cases[chunk.begin].name;
  request.last = cases[chunk.end - 1].name;
  for (std::size_t i = chunk.begin; i < chunk.end; ++i) request.ops.insert(cases[i].op);
  return request;
}

std::string to_text(const ChildRequest& request) {
  json text{{"begin", request.chunk.begin},
            {"end", request.chunk.end},
            {"first", request.first},
            {"last", request.last},
            {"ops", request.ops},
            {"shuts_down", request.shuts_down},
            {"seed", request.options.seed},
            {"small", request.options.small},
            {"options", request.options.options}};
  for (const auto& [name, field] : path_fields) text[name] = platform::text_of(request.options.*field);
  for (const auto& [name, field] : text_fields) text[name] = request.options.*field;
  return text.dump(-1, ' ', true, json::error_handler_t::replace);
}

ChildRequest child_request_from(const std::string& text) {
  try {
    const json from = json::parse(text);
    ChildRequest request;
    request.chunk = {from.at("begin").get<std::size_t>(), from.at("end").get<std::size_t>()};
    request.first = from.at("first").get<std::string>();
    request.last = from.at("last").get<std::string>();
    request.ops = from.at("ops").get<std::set<std::string>>();
    request.shuts_down = from.at("shuts_down").get<bool>();
    request.options.seed = from.at("seed").get<std::uint64_t>();
    request.options.small = from.at("small").get<bool>();
    request.options.options = from.at("options").get<std::vector<std::pair<std::string, std::string>>>();
    for (const auto& [name, field] : path_fields) request.options.*field = platform::path_of(from.at(name).get<std::string>());
    for (const auto& [name, field] : text_fields) request.options.*field = from.at(name).get<std::string>();
    return request;
  } catch (const json::exception& error) {
    throw Error(std::string("conformance: a child process was started with arguments that are not those of the kit: ") + error.what());
  }
}

}  // namespace tenon::conformance
