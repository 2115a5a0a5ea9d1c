// SPDX-License-Identifier: Apache-2.0
// cli/backend_report.h - backends loaded without a Context for the reporting subcommands: a Context throws if no backend is healthy.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/config.h>

#include "cli/common.h"
#include "loader/loader.h"

namespace tenon::exec {
class HostServices;
}

namespace tenon::cli {

/// The result of loading. The services outlive the backends that use them.
struct LoadedBackends {
  std::vector<std::shared_ptr<exec::HostServices>> services;
  loader::Result result;
};

/// Loads backends as a Context does; `before_create` (may be null) is called after a backend is negotiated and before it is created.
/// Errors  a key of backends.options that the backend does not have.
LoadedBackends load_backends(const Config& config, loader::Options options, const std::function<void()>& before_create = nullptr);

/// The state of a record: "healthy", "shadowed", "denied", "not usable".
const char* state_of(const loader::Record& record);
/// "cpu", "gpu" or "accelerator", from a TENON_DEVICE_* value.
const char* device_kind_name(std::uint32_t kind);

nlohmann::ordered_json to_json(const loader::Record& record);
nlohmann::ordered_json to_json(const loader::PlaceRecord& place);
/// The inverse of to_json; a child process sends its record this way.
loader::Record record_from_json(const nlohmann::ordered_json& json);

/// The document as text with a trailing newline. Invalid UTF-8, which may come from a plugin, becomes U+FFFD.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace tenon::cli
