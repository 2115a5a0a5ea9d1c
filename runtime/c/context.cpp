// SPDX-License-Identifier: Apache-2.0
// Contexts and devices of the C API.
#include <filesystem>

#include <tenon/config.h>
#include <tenon/stream.h>

#include "c/json.h"
#include "platform/path.h"

namespace tenon::c {
namespace {

/// The application's text goes before the other sources of the configuration.
Config config_of(const TenonContextOptions& options) {
  ConfigSources sources;
  sources.file = optional_text(options.config_file);
  Config config = resolve_config(sources);
  if (options.config == nullptr) return config;
  const std::string given = options.config;
  if (given.find_first_not_of(" \t\r\n") == std::string::npos) return config;
  Config layer = config_from_text(given, "<config>");
  for (auto& [key, origin] : layer.origins) origin.kind = Origin::Kind::api;
  merge_config(config, layer);
  return config;
}

Json json_of(const MissingLibrary& library) {
  return {{"name", library.name}, {"needed_by", platform::text_of(library.needed_by)}, {"folders", library.folders}};
}

Json json_of(const LoadRecord& record) {
  Json missing = Json::array();
  for (const MissingLibrary& library : record.missing) missing.push_back(json_of(library));
  return {{"path", platform::text_of(record.path)},
          {"name", record.name},
          {"origin", record.origin},
          {"reached", name_of(record.reached)},
          {"status", name_of(record.status)},
          {"healthy", record.healthy},
          {"shadowed", record.shadowed},
          {"denied", record.denied},
          {"text", record.text},
          {"remedy", record.remedy},
          {"warnings", record.warnings},
          {"exposures", record.exposures},
          {"missing", missing},
          {"output", record.output},
          {"version", record.version},
          {"build_id", record.build_id},
          {"vendor", record.vendor},
          {"description", record.description},
          {"requirements", record.requirements},
          {"priority", record.priority},
          {"abi", std::to_string(record.abi_major) + "." + std::to_string(record.abi_minor)},
          {"devices", record.devices},
          {"summary", record.summary}};
}

const char* name_of(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : kind == DeviceKind::gpu ? "gpu" : "accelerator";
}

Json json_of(const DeviceInfo& info) {
  Json dtypes = Json::array();
  for (const DType dtype : info.dtypes) dtypes.push_back(tenon::name_of(dtype));
  return {{"name", info.name},
          {"alias", info.alias},
          {"backend", info.backend},
          {"kind", name_of(info.kind)},
          {"product", info.product},
          {"identity", info.identity},
          {"description", info.description},
          {"memory_size_bytes", info.memory_size_bytes},
          {"memory_free_bytes", info.memory_free_bytes},
          {"compute", std::to_string(info.compute_major) + "." + std::to_string(info.compute_minor)},
          {"clock_khz", info.clock_khz},
          {"alignment_bytes", info.alignment_bytes},
          {"dtypes", dtypes}};
}

}  // namespace
}  // namespace tenon::c

using namespace tenon;
using namespace tenon::c;

TenonError* tenon_context_create(const TenonContextOptions* options, TenonContext** out_context) {
  return guard(__func__, [&] {
    required(out_context, "out_context");
    const TenonContextOptions given = options_of(options, "options");
    std::vector<std::filesystem::path> plugins;
    for (const std::string& path : texts(given.plugins, given.plugin_count, "plugins")) plugins.push_back(platform::path_of(path));
    std::vector<std::string> origins;
    if (given.plugin_origins != nullptr) {
      for (const char* origin : array(given.plugin_origins, given.plugin_count, "plugin_origins")) origins.push_back(optional_text(origin));
    }
    *out_context = new TenonContext(Context(config_of(given), plugins, {}, {}, origins));
  });
}

TenonError* tenon_context_config(const TenonContext* context, char** out_yaml) {
  return guard(__func__, [&] {
    required(out_yaml, "out_yaml");
    *out_yaml = new_text(to_yaml(get(context, "context").value.config()));
  });
}

TenonError* tenon_context_load_report(const TenonContext* context, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const LoadReport& report = get(context, "context").value.load_report();
    Json records = Json::array(), places = Json::array();
    for (const LoadRecord& record : report.records) records.push_back(json_of(record));
    for (const LoadPlace& place : report.places)
      places.push_back({{"path", platform::text_of(place.path)}, {"origin", place.origin}, {"text", place.text}});
    *out_json = new_json({{"records", records}, {"places", places}});
  });
}

TenonError* tenon_context_devices(const TenonContext* context, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    Json devices = Json::array();
    for (const DeviceInfo& info : get(context, "context").value.devices()) devices.push_back(json_of(info));
    *out_json = new_json(devices);
  });
}

TenonError* tenon_device_open(const TenonContext* context, const char* name, TenonDevice** out_device) {
  return guard(__func__, [&] {
    required(out_device, "out_device");
    const Context& on = get(context, "context").value;
    *out_device = new TenonDevice(name == nullptr ? on.default_device() : on.device(name));
  });
}

const char* tenon_device_name(const TenonDevice* device) {
  if (device == nullptr || static_cast<const Object*>(device)->kind() != Kind::device) return "";
  return device->value.name().c_str();
}

TenonError* tenon_device_describe(const TenonDevice* device, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const Device& own = get(device, "device").value;
    Json json = json_of(own.info());
    json["ops"] = own.info().ops;
    const MemoryUse memory = own.memory();
    json["live_size_bytes"] = memory.live_size_bytes;
    json["peak_size_bytes"] = memory.peak_size_bytes;
    json["reserved_size_bytes"] = memory.reserved_size_bytes;
    json["limit_size_bytes"] = memory.limit_size_bytes;
    *out_json = new_json(json);
  });
}

TenonError* tenon_device_synchronize(const TenonDevice* device) {
  return guard(__func__, [&] { Stream::of_programs(get(device, "device").value).synchronize(); });
}

TenonError* tenon_device_trim(const TenonDevice* device) {
  return guard(__func__, [&] { get(device, "device").value.trim(); });
}
