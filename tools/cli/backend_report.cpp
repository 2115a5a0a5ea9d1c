// SPDX-License-Identifier: Apache-2.0
#include "cli/backend_report.h"

#include <cstdlib>
#include <map>

#include "exec/host_services.h"
#include "exec/thread_pool.h"
#include "platform/path.h"

namespace tenon::cli {

LoadedBackends load_backends(const Config& config, loader::Options options, const std::function<void()>& before_create) {
  LoadedBackends loaded;
  const auto threads = config.threads > 0 ? static_cast<std::uint32_t>(config.threads) : exec::available_threads();
  const auto pool = std::make_shared<exec::ThreadPool>(threads);
  options.make_host = [&](const tenon_backend_info& info, std::uint32_t abi_minor) {
    std::map<std::string, std::string> backend_options;
    if (const auto found = config.backends.options.find(info.name); found != config.backends.options.end()) backend_options = found->second;
    loaded.services.push_back(std::make_shared<exec::HostServices>(info, abi_minor, pool, backend_options));
    if (before_create) before_create();
    return loaded.services.back()->table();
  };
  loaded.result = loader::load(options);
  return loaded;
}

const char* state_of(const loader::Record& record) {
  if (record.healthy) return "healthy";
  if (record.shadowed) return "shadowed";
  return record.denied ? "denied" : "not usable";
}

const char* device_kind_name(std::uint32_t kind) {
  return kind == TENON_DEVICE_CPU ? "cpu" : kind == TENON_DEVICE_GPU ? "gpu" : "accelerator";
}

nlohmann::ordered_json to_json(const loader::Record& record) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const loader::DeviceSummary& device : record.devices) {
    devices.push_back({{"name", device.name},
                       {"kind", device_kind_name(device.kind)},
                       {"description", device.description},
                       {"identity", device.identity},
                       {"memory_size_bytes", device.memory_size_bytes}});
  }
  nlohmann::ordered_json missing = nlohmann::ordered_json::array();
  for (const loader::MissingLibrary& library : record.missing) {
    missing.push_back({{"library", library.name}, {"needed_by", platform::text_of(library.needed_by)}, {"folders", library.folders}});
  }
  return {{"name", record.name},
          {"path", platform::text_of(record.path)},
          {"origin", record.origin},
          {"state", state_of(record)},
          {"stage", loader::name_of(record.reached)},
          {"status", record.status},
          {"code", record.healthy ? "OK" : loader::status_name(record.status)},
          {"reason", record.text},
          {"remedy", record.remedy},
          {"missing", std::move(missing)},
          {"warnings", record.warnings},
          {"exposures", record.exposures},
          {"output", record.output},
          {"version", record.version},
          {"build_id", record.build_id},
          {"vendor", record.vendor},
          {"description", record.description},
          {"requirements", record.requirements},
          {"priority", record.priority},
          {"flags", record.flags},
          {"abi_major", record.abi_major},
          {"abi_minor_lowest", record.abi_minor_lowest},
          {"abi_minor_highest", record.abi_minor_highest},
          {"abi_minor", record.abi_minor},
          {"devices", std::move(devices)}};
}

nlohmann::ordered_json to_json(const loader::PlaceRecord& place) {
  return {{"path", platform::text_of(place.path)}, {"origin", place.origin}, {"found", place.text}};
}

loader::Record record_from_json(const nlohmann::ordered_json& json) {
  loader::Record record;
  const auto take = [&json](const char* key, auto& out) { json.at(key).get_to(out); };
  std::string path, state, stage;
  take("name", record.name);
  take("path", path);
  record.path = platform::path_of(path);
  take("origin", record.origin);
  take("state", state);
  record.healthy = state == "healthy";
  record.shadowed = state == "shadowed";
  record.denied = state == "denied";
  take("stage", stage);
  for (loader::Stage s = loader::Stage::named; s <= loader::Stage::devices; s = static_cast<loader::Stage>(static_cast<int>(s) + 1)) {
    if (stage == loader::name_of(s)) record.reached = s;
  }
  take("status", record.status);
  take("reason", record.text);
  take("remedy", record.remedy);
  for (const auto& entry : json.at("missing")) {
    record.missing.push_back({entry.at("library"), entry.at("needed_by").get<std::string>(), entry.at("folders")});
  }
  take("warnings", record.warnings);
  take("exposures", record.exposures);
  take("output", record.output);
  take("version", record.version);
  take("build_id", record.build_id);
  take("vendor", record.vendor);
  take("description", record.description);
  take("requirements", record.requirements);
  take("priority", record.priority);
  take("flags", record.flags);
  take("abi_major", record.abi_major);
  take("abi_minor_lowest", record.abi_minor_lowest);
  take("abi_minor_highest", record.abi_minor_highest);
  take("abi_minor", record.abi_minor);
  for (const auto& entry : json.at("devices")) {
    loader::DeviceSummary device;
    entry.at("name").get_to(device.name);
    const std::string kind = entry.at("kind");
    device.kind = kind == "cpu" ? TENON_DEVICE_CPU : kind == "gpu" ? TENON_DEVICE_GPU : TENON_DEVICE_ACCELERATOR;
    entry.at("description").get_to(device.description);
    entry.at("identity").get_to(device.identity);
    entry.at("memory_size_bytes").get_to(device.memory_size_bytes);
    record.devices.push_back(std::move(device));
  }
  return record;
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tenon::cli
