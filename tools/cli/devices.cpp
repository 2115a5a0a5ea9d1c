// SPDX-License-Identifier: Apache-2.0
// tenon devices: lists the devices as a table, as JSON, or in the format of Gorgonia's cudatest.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <regex>

#include <tenon/context.h>
#include <tenon/error.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/machine.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/topology.h"
#include "cli/verbs.h"
#include "core/table.h"
#include "exec/context_state.h"
#include "exec/loading.h"

namespace tenon::cli {
namespace {

constexpr int exit_without_gpu = 2;

struct Arguments {
  Common common;
  std::string format, require;
};

/// The devices and the one that `device:` selects, or the error if there is no such device.
struct Found {
  std::vector<DeviceInfo> devices;
  std::optional<std::size_t> chosen;
  std::string choice;  ///< "openblas:0 (default)", "reference:0 (environment TENON_DEVICE)"
  std::string others;  ///< the backends that cannot be used, with the reasons; empty without one
  std::uint32_t threads = 1;
  std::optional<Error> failure;
};

const char* name_of(DeviceKind kind) {
  return kind == DeviceKind::cpu ? "cpu" : kind == DeviceKind::gpu ? "gpu" : "accelerator";
}

int index_of(const DeviceInfo& device) {
  return std::stoi(device.name.substr(device.name.rfind(':') + 1));
}

Found find_devices(const Arguments& arguments) {
  Found found;
  const Config config = arguments.common.resolve();
  found.threads = thread_budget(config);
  try {
    const Context context(config, {}, arguments.common.plugins);
    found.devices = context.devices();
    found.others = exec::why_not_chosen(context.state()->report);
    found.chosen = context.state()->find(parse_device_name(config.device));
    found.choice = fmt::format("{} ({})", found.devices[*found.chosen].name, config.origin_of("device"));
  } catch (const Error& e) {
    if (e.status() != Status::device_not_found) throw;
    found.failure = e;
  }
  return found;
}

std::string size_text(std::uint64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

std::string as_text(const Found& found) {
  Table table({"", "name", "alias", "kind", "memory", "free", "compute", "clock", "processor", "description"});
  for (std::size_t i = 0; i < found.devices.size(); ++i) {
    const DeviceInfo& d = found.devices[i];
    table.add({found.chosen == i ? "*" : "", d.name, d.alias.empty() ? "-" : d.alias, name_of(d.kind), size_text(d.memory_size_bytes),
               size_text(d.memory_free_bytes), d.compute_major == 0 ? "-" : fmt::format("{}.{}", d.compute_major, d.compute_minor),
               d.clock_khz == 0 ? "-" : fmt::format("{} MHz", d.clock_khz / 1000), d.product, d.description});
  }
  std::string text = found.devices.empty() ? "" : table.str();
  if (found.chosen) text += fmt::format("\n* {}\n", found.choice);
  for (const DeviceInfo& d : found.devices) {
    if (d.identity.find('=') != std::string::npos) text += fmt::format("identity of {}: {}\n", d.name, d.identity);
  }
  if (!found.others.empty()) text += fmt::format("\nnot usable: {}\n", found.others);
  text += "\nhost\n";
  for (const auto& [what, value] : describe_parallelism(found.threads)) text += fmt::format("  {:<17} {}\n", what, value);
  return text;
}

std::vector<std::string> flag_names(std::uint32_t flags) {
  std::vector<std::string> names;
  if (flags & TENON_DEVICE_HOST_ADDRESSABLE) names.emplace_back("host_addressable");
  if (flags & TENON_DEVICE_INLINE_STREAMS) names.emplace_back("inline_streams");
  if (flags & TENON_DEVICE_SINGLE_NODE_PLANS) names.emplace_back("single_node_plans");
  return names;
}

/// The schema is tests/end_to_end/devices.schema.json.
std::string as_json(const Found& found) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < found.devices.size(); ++i) {
    const DeviceInfo& d = found.devices[i];
    std::vector<std::string> dtypes;
    for (const DType dtype : d.dtypes) dtypes.emplace_back(tenon::name_of(dtype));
    json.push_back({{"name", d.name},
                    {"alias", d.alias},
                    {"kind", name_of(d.kind)},
                    {"index", index_of(d)},
                    {"backend", d.backend},
                    {"product", d.product},
                    {"identity", d.identity},
                    {"description", d.description},
                    {"memory_size_bytes", d.memory_size_bytes},
                    {"memory_free_bytes", d.memory_free_bytes},
                    {"max_allocation_size_bytes", d.max_allocation_size_bytes},
                    {"compute_major", d.compute_major},
                    {"compute_minor", d.compute_minor},
                    {"clock_khz", d.clock_khz},
                    {"flags", flag_names(d.flags)},
                    {"dtypes", dtypes},
                    {"ops", d.ops},
                    {"chosen", found.chosen == i}});
  }
  return dump(json);
}

/// 1000 * major + 10 * minor of the "CUDA 12.4" in a description, as cuDriverGetVersion returns it; 0 if there is none.
int cuda_version(const std::vector<DeviceInfo>& gpus) {
  static const std::regex pattern("\\bCUDA ([0-9]{1,4})\\.([0-9]{1,2})\\b");
  std::smatch match;
  for (const DeviceInfo& gpu : gpus) {
    if (std::regex_search(gpu.description, match, pattern)) return 1000 * std::stoi(match[1]) + 10 * std::stoi(match[2]);
  }
  return 0;
}

/// Quotes plain text as Go's %q does.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

/// Why there is no GPU: the loader's reason for each backend that is not usable.
std::string reason_without_gpu(const Arguments& arguments) {
  const Config config = arguments.common.resolve();
  const LoadedBackends loaded = load_backends(config, exec::loader_options(config, {}, arguments.common.plugins));
  std::string text;
  for (const loader::Record& record : loaded.result.records) {
    if (!record.healthy && !record.shadowed) text += fmt::format("{}: {}; {}\n", record.name, record.text, record.remedy);
  }
  return text.empty() ? "No GPU: none of the backends found has one\n" : "No GPU. Unusable backends:\n" + text;
}

std::vector<DeviceInfo> gpus_of(const Found& found) {
  std::vector<DeviceInfo> gpus;
  for (const DeviceInfo& device : found.devices) {
    if (device.kind == DeviceKind::gpu) gpus.push_back(device);
  }
  return gpus;
}

std::string as_cudatest(const std::vector<DeviceInfo>& gpus) {
  std::string text = fmt::format("\nCUDA version: {}\nCUDA devices: {}\n\n", cuda_version(gpus), gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const DeviceInfo& d = gpus[i];
    text += fmt::format("Device {}\n========\nName      :\t{}\nClock Rate:\t{} kHz\nMemory    :\t{} bytes\nCompute   : \t{}.{}\n\n", i,
                        quoted(d.product), d.clock_khz, d.memory_size_bytes, d.compute_major, d.compute_minor);
  }
  return text;
}

void run_devices(const Arguments& arguments) {
  const Found found = find_devices(arguments);
  const std::vector<DeviceInfo> gpus = gpus_of(found);
  const bool report = arguments.format == "cudatest";
  if (report) {
    print(as_cudatest(gpus));
    if (gpus.empty()) print(reason_without_gpu(arguments));
  } else {
    print(arguments.format == "json" ? as_json(found) : as_text(found));
  }
  if (arguments.require == "gpu" && gpus.empty()) {
    if (!report) print_message(reason_without_gpu(arguments));
    set_exit_code(exit_without_gpu);
    return;
  }
  // The cudatest report does not depend on the selected device.
  if (found.failure && !report) throw *found.failure;
}

}  // namespace

void add_devices_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("devices", "list the devices; * marks the selected one");
  arguments->common.add_to(*command);
  add_format(*command, arguments->format, {"text", "json", "cudatest"});
  command->add_option("--require", arguments->require, "exit with code 2 if there is no device of this kind")
      ->check(CLI::IsMember({"gpu"}));
  command->callback([arguments] { run_devices(*arguments); });
}

}  // namespace tenon::cli
