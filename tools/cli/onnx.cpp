// SPDX-License-Identifier: Apache-2.0
// tenon run: runs an ONNX model. tenon onnx info, tenon onnx check: what a model holds, and whether it can be imported.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/npy.h>
#include <tenon/onnx.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/explanation.h"
#include "cli/onnx_inputs.h"
#include "cli/program.h"
#include "cli/standard_streams.h"
#include "cli/verbs.h"
#include "core/table.h"
#include "onnx/report.h"
#include "platform/path.h"
#include "text/counted.h"

namespace tenon::cli {
namespace {

struct RunArguments {
  Common common;
  std::string file, out;
  OnnxInputs inputs;
};

/// A file name for an output: slashes of ONNX names are not folders.
std::string file_name_of(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == ':' || c == '\\') c = '_';
  }
  return name + ".npy";
}

void run_model(const RunArguments& arguments) {
  const Context context(arguments.common.resolve(), {}, arguments.common.plugins);
  onnx::Model model = onnx::Model::load(arguments.file, context);
  const onnx::NamedTensors inputs = arguments.inputs.tensors(model);
  print(fmt::format("inputs: {}\n", arguments.inputs.str(model, inputs)));
  const std::vector<Tensor>& results = model.run(inputs);
  std::error_code failure;
  if (!arguments.out.empty()) std::filesystem::create_directories(arguments.out, failure);
  if (failure)
    throw Error(fmt::format("--out: expected a folder that exists or can be created, got {}: {}", arguments.out, failure.message()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor result = results[i].to_host();
    const std::string& name = model.outputs()[i].name;
    print(fmt::format("{} {}\n{}\n", name, result.str(), result.text()));
    if (!arguments.out.empty())
      save_npy(platform::text_of(platform::path_of(arguments.out) / platform::path_of(file_name_of(name))), result);
  }
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

nlohmann::ordered_json to_json(const onnx::FileReport& report) {
  const auto types = [](const std::vector<onnx::ValueType>& values) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const onnx::ValueType& value : values) {
      nlohmann::ordered_json dims = nlohmann::ordered_json::array();
      for (const onnx::Dimension& dimension : value.shape) dims.push_back(dimension.str());
      list.push_back({{"name", value.name}, {"type", value.type}, {"shape", value.ranked ? dims : nlohmann::ordered_json()}});
    }
    return list;
  };
  nlohmann::ordered_json operators = nlohmann::ordered_json::array();
  for (const onnx::OperatorCount& op : report.operators) {
    operators.push_back({{"domain", op.domain},
                         {"op", op.op},
                         {"opset", op.opset},
                         {"count", op.count},
                         {"supported", op.reason.empty()},
                         {"reason", op.reason}});
  }
  const onnx::Metadata& data = report.metadata;
  return {{"graph", data.graph},
          {"producer", data.producer},
          {"producer_version", data.producer_version},
          {"ir_version", data.ir_version},
          {"opsets", data.opsets},
          {"properties", data.properties},
          {"inputs", types(report.inputs)},
          {"outputs", types(report.outputs)},
          {"weights", report.weights},
          {"weights_size_bytes", report.weights_size_bytes},
          {"operators", operators}};
}

std::string operator_name(const onnx::OperatorCount& op) {
  return op.domain == "ai.onnx" ? op.op : op.domain + "." + op.op;
}

void show_info(const std::string& file, const std::string& format) {
  const onnx::FileReport report = onnx::inspect(file);
  if (format == "json") return print(dump(to_json(report)));
  const onnx::Metadata& data = report.metadata;
  std::string text = fmt::format("{}: graph '{}'", file, data.graph);
  if (!data.producer.empty()) text += " by " + data.producer + (data.producer_version.empty() ? "" : " " + data.producer_version);
  text += fmt::format(", IR version {}\n", data.ir_version);
  const std::string remark = onnx::remark_on_opset(data);
  for (const auto& [domain, version] : data.opsets)
    text += fmt::format("opset    {} {}{}\n", domain, version, domain != "ai.onnx" || remark.empty() ? "" : ", " + remark);
  for (const auto& [key, value] : data.properties) text += fmt::format("property {}: {}\n", key, value);
  for (const onnx::ValueType& input : report.inputs) text += fmt::format("input    {}\n", input.str());
  for (const onnx::ValueType& output : report.outputs) text += fmt::format("output   {}\n", output.str());
  text += fmt::format("weights  {} elements; initializers take {}\n\n", report.weights, mebibytes(report.weights_size_bytes));
  Table table({"operator", "opset", "nodes", "imported"});
  for (const onnx::OperatorCount& op : report.operators) {
    table.add({operator_name(op), std::to_string(op.opset), std::to_string(op.count), op.reason.empty() ? "yes" : "no: " + op.reason});
  }
  print(text + table.str());
}

struct CheckArguments {
  Common common;
  std::string file;
  OnnxInputs inputs;
};

void check_model(const CheckArguments& arguments) {
  const onnx::FileReport report = onnx::inspect(arguments.file);
  for (const onnx::OperatorCount& op : report.operators) {
    if (op.reason.empty()) continue;
    print(fmt::format("{}-{}, {}, first '{}': {}\n", operator_name(op), op.opset, counted(op.count, "node"), op.node, op.reason));
  }
  if (report.unsupported() > 0) {
    print(fmt::format("{}: {} of {} cannot be imported\n", arguments.file, report.unsupported(),
                      counted(report.operators.size(), "operator")));
    return set_exit_code(1);
  }
  const Context context(arguments.common.resolve(), {}, arguments.common.plugins);
  onnx::Model model = onnx::Model::load(arguments.file, context);
  const Explanation explanation = explain(model, context, arguments.file, arguments.inputs);
  show(explanation, "text");
  if (!explanation.runs()) return;
  print(fmt::format("{}: can be run\n", arguments.file));
}

}  // namespace

void add_onnx_verbs(CLI::App& app) {
  auto run = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run an ONNX model and print its outputs");
  command->add_option("file", run->file, "ONNX model")->required()->type_name("FILE");
  run->inputs.add_to(*command);
  command->add_option("--out", run->out, "also write each output as .npy to this folder")->type_name("DIR");
  run->common.add_to(*command);
  command->callback([run] { run_model(*run); });

  CLI::App* onnx = app.add_subcommand("onnx", "inspect ONNX models");
  onnx->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>();
  CLI::App* info = onnx->add_subcommand("info", "show what a model holds: inputs, outputs, opsets, operators, weights");
  info->add_option("file", *file, "ONNX model")->required()->type_name("FILE");
  add_format(*info, *format, {"text", "json"});
  info->callback([file, format] { show_info(*file, *format); });
  auto check = std::make_shared<CheckArguments>();
  CLI::App* checked = onnx->add_subcommand("check", "say whether a model can be run, what would run where, and why not");
  checked->add_option("file", check->file, "ONNX model")->required()->type_name("FILE");
  check->inputs.add_to(*checked);
  check->common.add_to(*checked);
  checked->callback([check] { check_model(*check); });
}

}  // namespace tenon::cli
