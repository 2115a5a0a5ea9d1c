// SPDX-License-Identifier: Apache-2.0
// Names of stages and status codes, and a record as text.
#include <fmt/format.h>

#include "loader/load_error.h"
#include "loader/loader.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::loader {

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::named:
      return "named";
    case Stage::found:
      return "found";
    case Stage::opened:
      return "opened";
    case Stage::symbol:
      return "symbol";
    case Stage::negotiated:
      return "negotiated";
    case Stage::self_check:
      return "self-check";
    case Stage::created:
      return "created";
    case Stage::devices:
      return "devices";
  }
  return "unknown";
}

std::string status_name(tenon_status status) {
  switch (status) {
    case TENON_OK:
      return "OK";
    case TENON_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case TENON_UNSUPPORTED:
      return "UNSUPPORTED";
    case TENON_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case TENON_DEVICE_NOT_FOUND:
      return "DEVICE_NOT_FOUND";
    case TENON_DEVICE_LOST:
      return "DEVICE_LOST";
    case TENON_INCOMPATIBLE:
      return "INCOMPATIBLE";
    case TENON_NOT_READY:
      return "NOT_READY";
    case TENON_CANCELLED:
      return "CANCELLED";
    case TENON_VENDOR_ERROR:
      return "VENDOR_ERROR";
    case TENON_INTERNAL:
      return "INTERNAL";
    case TENON_FORKED:
      return "FORKED";
    default:
      return fmt::format("status {}", status);
  }
}

std::string describe(const Record& record) {
  std::string text =
      fmt::format("{} ({}, {}): ", record.name, record.path.empty() ? "in the process" : platform::text_of(record.path), record.origin);
  if (record.healthy) {
    text += fmt::format("healthy, version {}, {}", record.version, counted(record.devices.size(), "device"));
  } else {
    text += fmt::format("not usable, stage '{}' reached, {}: {}\n  remedy: {}", name_of(record.reached), status_name(record.status),
                        record.text, record.remedy);
  }
  for (const auto* warnings : {&record.warnings, &record.exposures}) {
    for (const std::string& warning : *warnings) text += "\n  warning: " + warning;
  }
  if (!record.healthy && !record.output.empty()) text += "\n  it printed: " + record.output;
  return text;
}

}  // namespace tenon::loader
