// SPDX-License-Identifier: Apache-2.0
#include "cli/probe.h"

#include <fmt/core.h>

#include <cstdlib>
#include <exception>
#include <string>

#include <tenon/error.h>

#include "cli/backend_report.h"
#include "exec/loading.h"
#include "loader/child.h"
#include "loader/error_text.h"
#include "loader/load_error.h"
#include "platform/library.h"

namespace tenon::cli {
namespace {

using loader::Phase;
using loader::tell;

/// "NVIDIA H200, CUDA 12.4, cuBLAS 12.4.5, compute capability 9.0". Reports need the versions of the libraries in use.
std::string describe_device(const tenon_device_info& device) {
  std::string text;
  for (const char* part : {device.name, device.description}) {
    if (part != nullptr && *part != '\0') text += (text.empty() ? "" : ", ") + std::string(part);
  }
  if (device.compute_major != 0) text += fmt::format(", compute capability {}.{}", device.compute_major, device.compute_minor);
  return text;
}

/// Opens and closes every device. A device that fails to open is a warning; the backend stays healthy.
void try_devices(const loader::Backend& backend, loader::Record& record) {
  for (std::uint32_t i = 0; i < backend.devices().size(); ++i) {
    if (i < record.devices.size()) record.devices[i].description = describe_device(backend.devices()[i]);
    loader::ErrorText error;
    tenon_device* device = nullptr;
    const tenon_status status = backend.table().device_open(backend.handle(), i, &device, error);
    if (status == TENON_OK) {
      backend.table().device_close(device);
    } else {
      record.warnings.push_back(fmt::format("cannot open device {}:{}: {} ({})", backend.name(), i,
                                            error.text().empty() ? "no reason was given" : error.text(),
                                            name_of(static_cast<Status>(status))));
    }
  }
}

std::string line_of(const loader::Record& record) {
  return to_json(record).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Loads the candidate, and tells its record as a line of JSON.
void load_candidate(const platform::MessageChannel& messages, const loader::Record& candidate, const Config& config) {
  loader::Record record = candidate;
  try {
    tell(messages, Phase::querying);
    loader::Options options = exec::loader_options(config, {}, {});
    options.places = {{candidate.path, candidate.origin}};
    options.probe = {};  // this process is the probe
    LoadedBackends loaded = load_backends(config, std::move(options), [&messages] { tell(messages, Phase::creating); });
    if (!loaded.result.records.empty()) record = loaded.result.records.front();
    tell(messages, Phase::opening);
    for (const auto& backend : loaded.result.backends) try_devices(*backend, record);
    tell(messages, line_of(record));
    tell(messages, Phase::closing);
  } catch (const std::exception& e) {  // a mistake in the configuration
    record.status = TENON_INVALID_ARGUMENT;
    record.text = e.what();
    record.remedy = "correct the configuration";
    tell(messages, line_of(record));
  }
}

}  // namespace

loader::Record probe(const loader::Record& candidate, const std::vector<std::string>& arguments, double timeout_seconds) {
  loader::Record record = candidate;
  loader::ChildReport child;
  try {
    static const char here = 0;
    child = loader::run_child(platform::module_of(&here), arguments, timeout_seconds);
  } catch (const loader::LoadError& error) {
    throw Error(static_cast<Status>(error.status), fmt::format("doctor: {}: {}; {}", candidate.path.string(), error.text, error.remedy));
  }
  for (const std::string& line : child.lines) {
    const auto json = nlohmann::ordered_json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("stage")) record = record_from_json(json);  // otherwise the plugin wrote to the pipe
  }
  record.output = child.output;
  if (child.text.empty()) return record;
  if (child.reached < loader::Stage::devices) record.reached = child.reached;
  record.healthy = false;
  record.status = TENON_INTERNAL;
  record.text = child.text;
  const std::string avoid = fmt::format("exclude it with `backends: {{deny: [{}]}}`, and report this to its vendor", record.name);
  record.remedy = child.timed_out ? "if its device is slow to start, raise `tenon doctor --timeout`; otherwise " + avoid : avoid;
  return record;
}

void answer_probe(const loader::Record& candidate, const Config& config) {
  const auto messages = platform::MessageChannel::to_parent();
  if (!messages) return;
  load_candidate(*messages, candidate, config);
  tell(*messages, Phase::exiting);
  std::exit(0);  // with the destructors and exit handlers of the plugin
}

}  // namespace tenon::cli
