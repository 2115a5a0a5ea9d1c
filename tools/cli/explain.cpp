// SPDX-License-Identifier: Apache-2.0
// tenon explain: reports where each node of a training step runs and what it costs. Only --roofline executes nodes.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <tenon/program.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/program.h"
#include "cli/roofline.h"
#include "cli/standard_streams.h"
#include "cli/train_run.h"
#include "cli/verbs.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  std::string file, data, format;
  std::int64_t batch_size = 0;
  bool roofline = false;
};

/// The devices of the report, in the order of the context.
std::vector<DeviceInfo> devices_of(const TrainingRun& run, const PlacementReport& report) {
  std::set<std::string> names;
  for (const Placement& placement : report.nodes) names.insert(placement.device);
  std::vector<DeviceInfo> devices;
  for (const DeviceInfo& device : run.context().devices()) {
    if (names.contains(device.name)) devices.push_back(device);
  }
  return devices;
}

std::string as_text(const TrainingRun& run, const PlacementReport& report, std::int64_t batch_size) {
  std::string text = fmt::format("Training step of {} with a batch of {}{}\n", model_name(run), batch_size, in_precision(run));
  for (const DeviceInfo& device : devices_of(run, report))
    text += fmt::format("{}: {}, {}\n", device.name, device.product, device.description);
  return text + "\n" + report.str();
}

nlohmann::ordered_json to_json(const TrainingRun& run, const PlacementReport& report, std::int64_t batch_size) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceInfo& device : devices_of(run, report))
    devices.push_back({{"name", device.name}, {"product", device.product}, {"description", device.description}});
  nlohmann::ordered_json json{{"model", model_name(run)},
                              {"batch_size", batch_size},
                              {"precision", name_of(run.context().config().precision)},
                              {"devices", devices}};
  json.update(nlohmann::ordered_json::parse(report.json()));
  return json;
}

void run_explain(const Arguments& arguments) {
  TrainingRun run = prepare_run(arguments.file, arguments.common);
  const TrainDefinition& definition = run.definition();
  Shape sample;
  if (definition.model.input_shape) {
    sample = Shape(std::span<const std::int64_t>(*definition.model.input_shape));
  } else if (definition.data) {
    sample = run.load_data(arguments.data).train->x_type().shape;
    run.model().build(sample);
  }
  const std::int64_t batch_size = arguments.batch_size > 0 ? arguments.batch_size : definition.fit.batch_size;
  const PlacementReport report = run.model().explain(batch_size);
  const bool runs = std::ranges::none_of(report.nodes, [](const Placement& node) { return node.device.empty(); });
  if (!runs) {  // there is no program to draw or to time
    set_exit_code(1);
    return print(arguments.format == "json" ? dump(to_json(run, report, batch_size)) : as_text(run, report, batch_size));
  }
  if (arguments.format == "dot") return print(to_dot(run.model().program_of_step(batch_size).graph(), report.device_by_node()));
  std::optional<Roofline> roofline;
  if (arguments.roofline) roofline = measure_roofline(run, sample, batch_size);
  if (arguments.format == "json") {
    nlohmann::ordered_json json = to_json(run, report, batch_size);
    json["graph"] = nlohmann::ordered_json::parse(tenon::to_json(run.model().program_of_step(batch_size).graph(), report.device_by_node()));
    if (roofline) json["roofline"] = to_json(*roofline);
    return print(dump(json));
  }
  print(as_text(run, report, batch_size));
  if (roofline) print("\n" + as_text(*roofline));
}

}  // namespace

void add_explain_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("explain", "show where each node of a training step runs, why, and what it costs");
  command->add_option("file", arguments->file, "train.yaml or model.yaml")->required()->type_name("FILE");
  arguments->common.add_to(*command);
  add_format(*command, arguments->format, {"text", "json", "dot"});
  command->add_option("--batch", arguments->batch_size, "batch size (default: that of the file)")->check(CLI::PositiveNumber);
  command->add_option("--data", arguments->data, "folder of the data files, if they determine the input shape")->type_name("DIR");
  command->add_flag("--roofline", arguments->roofline,
                    "also time some steps on synthetic samples: flops, bytes, time and % of peak per layer and kernel");
  command->callback([arguments] { run_explain(*arguments); });
}

}  // namespace tenon::cli
