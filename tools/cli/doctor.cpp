// SPDX-License-Identifier: Apache-2.0
// tenon doctor: collects everything that a bug report needs. No backend is opened in this process: each is probed in a child process.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include <tenon/error.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/machine.h"
#include "cli/probe.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "exec/loading.h"
#include "loader/image.h"
#include "loader/transport.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string format;
  std::vector<std::string> required;
  double timeout_seconds = 10;
  // Of a child process: the candidate that it probes.
  std::string candidate, candidate_name, candidate_origin;
};

struct Findings {
  Config config;
  loader::Result result;
  std::size_t healthy = 0;
  std::vector<loader::TransportRecord> transports;
};

/// The path, name and origin of every candidate. Denying all of them keeps the loader from opening any.
loader::Result list_candidates(const Config& config, const std::vector<std::filesystem::path>& plugins) {
  loader::Options options = exec::loader_options(config, {}, plugins);
  options.deny = {"*"};
  return loader::load(options);
}

/// The command line of the child process that probes a candidate: this one's configuration, and the candidate.
std::vector<std::string> probe_arguments(const Common& common, const loader::Record& candidate) {
  std::vector<std::string> arguments = common.arguments();
  arguments.insert(arguments.begin(), "doctor");
  arguments.insert(arguments.end(), {"--candidate", platform::text_of(candidate.path), "--candidate-name", candidate.name,
                                     "--candidate-origin", candidate.origin});
  return arguments;
}

/// Marks a second backend of the same name as shadowed, as the loader does.
void shadow(loader::Record& record, const loader::Record& first) {
  record.healthy = false;
  record.shadowed = true;
  record.status = TENON_INVALID_ARGUMENT;
  record.text = fmt::format("another backend '{}' was found first: {} ({}){}", record.name, platform::text_of(first.path), first.origin,
                            first.healthy ? "" : ", which is not usable");
  record.remedy = first.healthy ? "nothing, if the first is the intended one; otherwise remove it, or name this file on the command line"
                                : "repair or remove the first, or name this file on the command line";
}

Findings examine(const Arguments& arguments) {
  Findings findings;
  findings.config = arguments.common.resolve();
  findings.result = list_candidates(findings.config, arguments.common.plugins);
  std::map<std::string, const loader::Record*> owners;
  for (loader::Record& record : findings.result.records) {
    loader::Record candidate;
    candidate.path = record.path;
    candidate.name = record.name;
    candidate.origin = record.origin;
    record = probe(candidate, probe_arguments(arguments.common, candidate), arguments.timeout_seconds);
    if (record.denied) continue;
    const auto [owner, first_of_name] = owners.emplace(record.name, &record);
    if (!first_of_name) shadow(record, *owner->second);
    if (record.healthy) ++findings.healthy;
  }
  findings.transports = loader::list_transports();
  return findings;
}

/// Lines of a backend's block: the label in its own column, followed by the text line by line.
std::string entry(const std::string& label, const std::string& text) {
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += fmt::format("    {:<10} {}\n", begin == 0 ? label : "", text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string block(const loader::Record& record) {
  std::string text = fmt::format("  {}: {}\n", record.name, state_of(record));
  text += entry("file", fmt::format("{} ({})", platform::text_of(record.path), record.origin));
  text += entry("stage", loader::name_of(record.reached));
  if (!record.healthy) {
    text += entry("cause", fmt::format("{}: {}", loader::status_name(record.status), record.text));
    text += entry("remedy", record.remedy);
  }
  for (const auto* warnings : {&record.warnings, &record.exposures}) {
    for (const std::string& warning : *warnings) text += entry("warning", warning);
  }
  text += entry("output", record.output);
  if (!record.version.empty()) {
    text += entry("version", record.version);
    text += entry("about", record.description);
    text += entry("vendor", record.vendor);
    text += entry("requires", record.requirements);
    text += entry("ABI",
                  fmt::format("{}.{}, negotiated {}.{}", record.abi_major, record.abi_minor_highest, record.abi_major, record.abi_minor));
  }
  text += entry("built with", record.build_id);
  text += entry("C runtime", loader::c_runtimes_of(loader::read_image(record.path)));
  text += entry("sha256", loader::checksum(record.path));
  for (const loader::DeviceSummary& device : record.devices) {
    std::string line = fmt::format("{}, {}", device_kind_name(device.kind), device.description);
    if (!device.identity.empty()) line += ", " + device.identity;
    if (device.memory_size_bytes != 0) line += fmt::format(", {} bytes", device.memory_size_bytes);
    text += entry(device.name, line);
  }
  return text;
}

std::string as_text(const Findings& findings) {
  std::string text;
  for (const auto& [what, value] : describe_machine(thread_budget(findings.config))) text += fmt::format("{:<17} {}\n", what, value);
  text += fmt::format("{:<17} {} ({})\n", "thread budget", thread_budget(findings.config), findings.config.origin_of("threads"));
  text += "\nsearched\n";
  for (const loader::PlaceRecord& place : findings.result.places)
    text += fmt::format("  {} ({}): {}\n", platform::text_of(place.path), place.origin, place.text);
  text += "\nbackends\n";
  for (const loader::Record& record : findings.result.records) text += "\n" + block(record);
  text += "\ntransports\n";
  for (const loader::TransportRecord& transport : findings.transports) {
    text += fmt::format("\n  {}: {}\n", transport.name, transport.usable ? "there" : "not usable");
    text += entry("file", platform::text_of(transport.path));
    text += entry("cause", transport.text);
    text += entry("remedy", transport.remedy);
  }
  if (findings.transports.empty()) text += "  none\n";
  text += "\neffective configuration\n\n" + to_yaml(findings.config);
  text += fmt::format("\n{} of {} healthy\n", findings.healthy, counted(findings.result.records.size(), "backend"));
  return text;
}

std::string as_json(const Findings& findings) {
  nlohmann::ordered_json machine, backends = nlohmann::ordered_json::array(), places = nlohmann::ordered_json::array();
  for (const auto& [what, value] : describe_machine(thread_budget(findings.config))) machine[what] = value;
  for (const loader::Record& record : findings.result.records) {
    backends.push_back(to_json(record));
    backends.back()["sha256"] = loader::checksum(record.path);
    const std::string runtimes = loader::c_runtimes_of(loader::read_image(record.path));
    if (!runtimes.empty()) backends.back()["c_runtime"] = runtimes;
  }
  for (const loader::PlaceRecord& place : findings.result.places) places.push_back(to_json(place));
  nlohmann::ordered_json transports = nlohmann::ordered_json::array();
  for (const loader::TransportRecord& transport : findings.transports) {
    transports.push_back({{"name", transport.name},
                          {"path", platform::text_of(transport.path)},
                          {"usable", transport.usable},
                          {"reason", transport.text},
                          {"remedy", transport.remedy}});
  }
  nlohmann::ordered_json origins = nlohmann::ordered_json::object();
  for (const auto& [key, origin] : findings.config.origins) origins[key] = origin.text;
  return dump({{"machine", machine},
               {"thread_budget", thread_budget(findings.config)},
               {"places", places},
               {"backends", backends},
               {"healthy", findings.healthy},
               {"transports", transports},
               {"configuration", to_yaml(findings.config, false)},
               {"origins", origins}});
}

/// What makes the command fail: backends that are required and not healthy; without --require, those that are broken, and paths of --plugin
/// without one.
std::vector<std::string> failures(const Arguments& arguments, const Findings& findings) {
  std::vector<std::string> failed;
  if (arguments.required.empty()) {
    for (const loader::Record& record : findings.result.records) {
      if (exec::is_broken(record)) failed.push_back(record.name);
    }
    for (const loader::PlaceRecord& place : findings.result.places) {
      if (place.origin == "command line" && place.candidates == 0)
        failed.push_back(fmt::format("--plugin {}", platform::text_of(place.path)));
    }
  }
  for (const std::string& name : arguments.required) {
    const auto& records = findings.result.records;
    const bool healthy =
        std::any_of(records.begin(), records.end(), [&](const loader::Record& record) { return record.name == name && record.healthy; });
    if (!healthy) failed.push_back(name);
  }
  return failed;
}

void run_doctor(const Arguments& arguments) {
  if (!arguments.candidate.empty()) {
    loader::Record candidate;
    candidate.path = platform::path_of(arguments.candidate);
    candidate.name = arguments.candidate_name;
    candidate.origin = arguments.candidate_origin;
    return answer_probe(candidate, arguments.common.resolve());
  }
  const Findings findings = examine(arguments);
  print(arguments.format == "json" ? as_json(findings) : as_text(findings));
  const std::vector<std::string> failed = failures(arguments, findings);
  if (failed.empty() && findings.healthy > 0) return;
  if (!failed.empty()) {
    const std::string what = arguments.required.empty() ? "broken" : "required and not healthy";
    print_message(fmt::format("tenon doctor: {}: {}\n", what, fmt::join(failed, ", ")));
  }
  set_exit_code(1);
}

}  // namespace

void add_doctor_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("doctor", "probe every backend in its own process and report problems with their remedies");
  arguments->common.add_to(*command);
  add_format(*command, arguments->format, {"text", "json"});
  command
      ->add_option("--require", arguments->required,
                   "exit with code 1 unless this backend is healthy, whatever the others are; repeatable. Default: no backend is broken")
      ->type_name("NAME");
  command->add_option("--timeout", arguments->timeout_seconds, "time limit of a backend in seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  // Hidden: for the child processes of a doctor.
  command->add_option("--candidate", arguments->candidate)->group("");
  command->add_option("--candidate-name", arguments->candidate_name)->group("");
  command->add_option("--candidate-origin", arguments->candidate_origin)->group("");
  command->callback([arguments] { run_doctor(*arguments); });
}

}  // namespace tenon::cli
