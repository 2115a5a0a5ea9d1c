// tenon/backend_report.h - backends as the reporting verbs see them: loaded without a Context, which refuses to be when none is healthy.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/config.h>

#include "loader/loader.h"
#include "tenon/verbs.h"

namespace tenon::exec {
class HostServices;
}

namespace tenon::cli {

/// What loading left. The services outlive the backends that use them.
struct LoadedBackends {
  std::vector<std::shared_ptr<exec::HostServices>> services;
  loader::Result result;
};

/// The configuration in force for a verb without a train.yaml: --set names keys of the configuration itself.
Config resolve_with_sets(const Common& common);

/// Where `config` and the command line say that backends are, and which of them it wants.
loader::Options loader_options(const Config& config, const std::vector<std::filesystem::path>& plugins);

/// Loads as a Context would; `before_create` (may be null) is called when a backend has been negotiated and is about to be created.
/// Errors  a knob in backends.options that its backend does not have.
LoadedBackends load_backends(const Config& config, loader::Options options, const std::function<void()>& before_create = nullptr);

/// The words of a record's state: "healthy", "shadowed", "denied", "not usable".
const char* state_of(const loader::Record& record);
/// "cpu", "gpu" or "accelerator" for a TENON_DEVICE_* value.
const char* device_kind_name(std::uint32_t kind);

nlohmann::ordered_json to_json(const loader::Record& record);
nlohmann::ordered_json to_json(const loader::PlaceRecord& place);
/// The inverse of to_json: how a child process hands its record over.
loader::Record record_from_json(const nlohmann::ordered_json& json);

/// The document as text, ending in a newline. Bytes that are not UTF-8, which a plugin may hand over, become U+FFFD.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace tenon::cli
