// SPDX-License-Identifier: Apache-2.0
#include "exec/loading.h"

#include <fmt/format.h>

#include <algorithm>

#include <tenon/error.h>
#include <tenon/op_digests.h>

#include "core/log.h"
#include "platform/path.h"
#include "yaml/suggest.h"

namespace tenon::exec {
namespace {

constexpr tenon_op_digest core_digests[] = TENON_OP_DIGESTS;

loader::ProbeMode mode_of(BackendProbe probe) {
  switch (probe) {
    case BackendProbe::always:
      return loader::ProbeMode::always;
    case BackendProbe::once:
      return loader::ProbeMode::once;
    case BackendProbe::never:
      break;
  }
  return loader::ProbeMode::never;
}

/// True for a path that the caller or the command line named: not to get it is an error.
bool is_request(const std::string& origin) {
  return origin == "API" || origin == "command line";
}

std::vector<std::string> names_of(const loader::Result& result) {
  std::vector<std::string> names;
  for (const loader::Record& record : result.records) names.push_back(record.name);
  return names;
}

/// That a place has nothing to load.
std::string explain_place(const loader::PlaceRecord& place) {
  return fmt::format("{} ({}): expected a backend file or a folder of backend files, got: {}", platform::text_of(place.path), place.origin,
                     place.text);
}

void check_plugins(const loader::Result& result) {
  for (const loader::PlaceRecord& place : result.places) {
    if (!is_request(place.origin) || place.candidates > 0) continue;
    throw Error(Status::device_not_found, "plugin " + explain_place(place));
  }
  for (const loader::Record& record : result.records) {
    if (!record.named || !is_request(record.origin) || record.healthy) continue;
    if (!record.shadowed && !record.denied) throw Error(static_cast<Status>(record.status), "plugin " + loader::describe(record));
    log::warning("plugin {} ({}) is not used: {}", platform::text_of(record.path), record.origin, record.text);
  }
}

void check_options(const Config& config, const loader::Result& result) {
  const std::vector<std::string> names = names_of(result);
  for (const auto& [backend, options] : config.backends.options) {
    if (options.empty() || std::find(names.begin(), names.end(), backend) != names.end()) continue;
    const std::string origin = config.origin_of(fmt::format("backends.options.{}.{}", backend, options.begin()->first));
    const std::string near = yaml::did_you_mean(backend, names);
    const std::string text = fmt::format("{}: key 'backends.options.{}': there is no backend of that name", origin, backend);
    if (!near.empty()) throw Error(text + near);
    log::warning("{}; its options have no effect", text);
  }
}

}  // namespace

loader::Options loader_options(const Config& config, const std::vector<std::filesystem::path>& plugins,
                               const std::vector<std::filesystem::path>& command_line_plugins,
                               const std::vector<std::string>& plugin_origins) {
  loader::Options options;
  std::vector<loader::SearchPlace> api;
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    const bool has_origin = i < plugin_origins.size() && !plugin_origins[i].empty();
    api.push_back({plugins[i], has_origin ? plugin_origins[i] : "API"});
  }
  std::vector<std::filesystem::path> yaml;
  for (const std::string& path : config.backends.search) yaml.push_back(platform::path_of(path));
  options.places = loader::default_places(api, command_line_plugins, yaml);
  options.probe = loader::default_probe(mode_of(config.backends.probe));
  options.allow = config.backends.allow;
  if (options.allow.empty()) {
    options.allow = config.backends.use;
    options.allow_key = "backends.use";
  }
  options.deny = config.backends.deny;
  options.core_digests = core_digests;
  return options;
}

bool is_broken(const loader::Record& record) {
  if (record.healthy || record.shadowed || record.denied || !record.missing.empty()) return false;
  return record.reached < loader::Stage::created || record.status == TENON_INTERNAL;
}

void log_loading(const loader::Result& result) {
  for (const std::string& text : result.warnings) log::warning("{}", text);
  for (const loader::PlaceRecord& place : result.places) {
    const bool is_configured = place.origin == "TENON_BACKEND_PATH" || place.origin == "backends.search";
    if (is_configured && place.candidates == 0) log::warning("{}", explain_place(place));
  }
  for (const loader::Record& record : result.records) {
    if (!record.probed.empty()) log::info("{}", record.probed);
    if (is_broken(record)) log::warning("backend {}", loader::describe(record));
  }
}

void check_requests(const Config& config, const loader::Result& result) {
  check_plugins(result);
  check_options(config, result);
}

std::vector<std::shared_ptr<loader::Backend>> in_order(const loader::Result& result, const std::vector<std::string>& use) {
  std::vector<std::shared_ptr<loader::Backend>> healthy;
  for (const auto& backend : result.backends) {
    if (backend->record().healthy) healthy.push_back(backend);
  }
  if (use.empty()) {
    std::stable_sort(healthy.begin(), healthy.end(), [](const auto& a, const auto& b) {
      const bool oracle_a = a->info().flags & TENON_BACKEND_ORACLE, oracle_b = b->info().flags & TENON_BACKEND_ORACLE;
      if (oracle_a != oracle_b) return oracle_b;
      if (a->info().priority != b->info().priority) return a->info().priority > b->info().priority;
      return a->name() < b->name();
    });
    return healthy;
  }
  std::vector<std::shared_ptr<loader::Backend>> ordered;
  for (const std::string& name : use) {
    const auto found = std::find_if(healthy.begin(), healthy.end(), [&](const auto& b) { return b->name() == name; });
    if (found != healthy.end()) {
      ordered.push_back(*found);
      continue;
    }
    std::string why = "no file of that name was found" + yaml::did_you_mean(name, names_of(result));
    for (const loader::Record& record : result.records) {
      if (record.name == name && !record.healthy) why = record.text;
    }
    log::warning("backend '{}', named in backends.use, is not available: {}", name, why);
  }
  return ordered;
}

std::string why_not_chosen(const loader::Result& result) {
  std::string text;
  for (const loader::Record& record : result.records) {
    if (!record.healthy && !record.shadowed) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", record.name, record.text);
  }
  return text;
}

}  // namespace tenon::exec
