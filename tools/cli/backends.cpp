// SPDX-License-Identifier: Apache-2.0
// tenon backends: lists every candidate file and whether it loads.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "core/table.h"
#include "exec/loading.h"
#include "platform/path.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string format;
};

std::string as_text(const loader::Result& result) {
  Table table({"name", "version", "state", "stage", "devices", "file"});
  for (const loader::Record& record : result.records) {
    std::string devices;
    for (const loader::DeviceSummary& device : record.devices) devices += (devices.empty() ? "" : " ") + device.name;
    table.add({record.name, record.version.empty() ? "-" : record.version, state_of(record), loader::name_of(record.reached),
               devices.empty() ? "-" : devices, platform::text_of(record.path)});
  }
  std::string text = table.str();
  for (const loader::Record& record : result.records) {
    if (!record.healthy) text += fmt::format("\n{}: {}\n  remedy: {}\n", record.name, record.text, record.remedy);
    for (const auto* warnings : {&record.warnings, &record.exposures}) {
      for (const std::string& warning : *warnings) text += fmt::format("\n{}: warning: {}\n", record.name, warning);
    }
  }
  for (const std::string& warning : result.warnings) text += fmt::format("\nwarning: {}\n", warning);
  text += "\nsearched\n";
  for (const loader::PlaceRecord& place : result.places)
    text += fmt::format("  {} ({}): {}\n", platform::text_of(place.path), place.origin, place.text);
  return text;
}

std::string as_json(const loader::Result& result) {
  nlohmann::ordered_json json{{"backends", nlohmann::ordered_json::array()}, {"places", nlohmann::ordered_json::array()}};
  for (const loader::Record& record : result.records) json["backends"].push_back(to_json(record));
  for (const loader::PlaceRecord& place : result.places) json["places"].push_back(to_json(place));
  return dump(json);
}

void run_backends(const Arguments& arguments) {
  const Config config = arguments.common.resolve();
  const LoadedBackends loaded = load_backends(config, exec::loader_options(config, {}, arguments.common.plugins));
  print(arguments.format == "json" ? as_json(loaded.result) : as_text(loaded.result));
  exec::check_requests(config, loaded.result);  // after the report, which has more
}

}  // namespace

void add_backends_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("backends", "list the backend files found, and why unusable ones are not loaded");
  arguments->common.add_to(*command);
  add_format(*command, arguments->format, {"text", "json"});
  command->callback([arguments] { run_backends(*arguments); });
}

}  // namespace tenon::cli
