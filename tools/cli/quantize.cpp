// SPDX-License-Identifier: Apache-2.0
// tenon quantize MODEL --data PATH --out FILE: writes a model as an ONNX file of 8-bit integers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/onnx.h>
#include <tenon/quantize.h>

#include "cli/backend_report.h"
#include "cli/common.h"
#include "cli/program.h"
#include "cli/quantization_data.h"
#include "cli/standard_streams.h"
#include "cli/train_run.h"
#include "cli/verbs.h"
#include "core/table.h"
#include "platform/path.h"
#include "text/counted.h"
#include "train/run_record.h"

namespace tenon::cli {
namespace {

struct Arguments {
  Common common;
  DataOptions data;
  quantize::Options options;
  std::string model, checkpoint, file, calibration = "minmax", activations = "u8", format;
};

/// A file that is removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_ + ".data", ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A file with the weights that it names.
std::uintmax_t size_of_model(const std::string& file) {
  std::error_code missing;
  const std::uintmax_t weights = std::filesystem::file_size(file + ".data", missing);
  return std::filesystem::file_size(file) + (missing ? 0 : weights);
}

/// The median duration of a run of both models, in turns, in milliseconds.
std::pair<double, double> latencies(onnx::Model& before, onnx::Model& after, const NamedTensors& inputs) {
  constexpr int runs = 21;
  const auto run = [&](onnx::Model& model) {
    const auto start = std::chrono::steady_clock::now();
    model.run(inputs);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<double> first, second;
  for (onnx::Model* model : {&before, &after}) run(*model), run(*model);  // compiles and warms up
  for (int i = 0; i < runs; ++i) {
    first.push_back(run(before));
    second.push_back(run(after));
  }
  const auto median = [](std::vector<double>& times) {
    std::ranges::nth_element(times, times.begin() + runs / 2);
    return times[runs / 2];
  };
  return {median(first), median(second)};
}

/// What the verb reports.
struct Result {
  quantize::Report report;
  quantize::Comparison comparison;
  std::string data;
  std::uintmax_t bytes_before = 0, bytes_after = 0;
  double ms_before = 0, ms_after = 0;
  std::int64_t batch = 1;
};

Result quantize_model(onnx::Model& model, const std::string& file, const Context& context, const QuantizationData& data,
                      const Arguments& arguments) {
  Result result{.report = quantize::quantize(model, context, data.calibration, arguments.file, arguments.options),
                .comparison = {},
                .data = data.description};
  result.bytes_before = size_of_model(file);
  result.bytes_after = size_of_model(arguments.file);
  onnx::Model quantized = onnx::Model::load(arguments.file, context);
  result.comparison = quantize::compare(model, quantized, data.test, data.labels, arguments.options.batch_size);
  const std::vector<onnx::Dimension>& shape = quantized.inputs()[0].shape;
  if (!shape.empty() && shape[0].is_fixed()) result.batch = shape[0].size;
  if (data.test.count >= result.batch) {
    std::tie(result.ms_before, result.ms_after) = latencies(model, quantized, data.test.read(0, result.batch));
  }
  return result;
}

Result run_quantize(const Arguments& arguments) {
  if (platform::path_of(arguments.model).extension() == ".onnx") {
    const Context context(arguments.common.resolve(), {}, arguments.common.plugins);
    onnx::Model model = onnx::Model::load(arguments.model, context);
    return quantize_model(model, arguments.model, context, arguments.data.of_files(model), arguments);
  }
  const train::SavedRun saved = train::find_run(arguments.model, arguments.checkpoint);
  TrainDefinition definition = prepare_definition(saved.definition, arguments.common, saved.overrides);
  Config config = arguments.common.resolve_over(definition.config);
  config.precision = Precision::float32;
  TrainingRun run(std::move(definition), Context(config, {}, arguments.common.plugins));
  if (!saved.checkpoint.empty() || run.definition().checkpoint) {
    load_weights(run, saved.checkpoint);
  } else {
    print_message("Weights: initial ones; --checkpoint names trained ones\n");
  }
  const DataSplits data = run.load_data(arguments.data.path);
  const TemporaryFile exported(arguments.file + ".f32.onnx");
  run.model().export_onnx(exported.path(), {.opset = arguments.options.opset});
  onnx::Model model = onnx::Model::load(exported.path(), run.context());
  return quantize_model(model, exported.path(), run.context(), arguments.data.of_run(data, model), arguments);
}

std::string as_text(const Result& result, const Arguments& arguments) {
  const quantize::Report& report = result.report;
  const auto quantized = std::ranges::count_if(report.nodes, &quantize::NodeReport::quantized);
  std::string text =
      fmt::format("Quantised {} of {} with weights; samples: {}\n", quantized, counted(report.nodes.size(), "node"), result.data);
  for (const quantize::NodeReport& node : report.nodes) {
    if (!node.quantized) text += fmt::format("  {} ({}) stays in f32: {}\n", node.name, node.op, node.reason);
  }
  const quantize::Comparison& c = result.comparison;
  Table table({"", "f32", "quantised"});
  const auto size = [](std::uintmax_t bytes) { return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024); };
  table.add({"file", size(result.bytes_before), size(result.bytes_after)});
  if (c.accuracy >= 0) table.add({"accuracy", fmt::format("{:.4f}", c.expected_accuracy), fmt::format("{:.4f}", c.accuracy)});
  if (c.same_class >= 0) table.add({"same class", "", fmt::format("{:.4f}", c.same_class)});
  table.add({"largest difference", "", fmt::format("{:.3g}", c.largest_difference)});
  table.add({"RMS difference", "", fmt::format("{:.3g}", c.rms_difference)});
  if (result.ms_before > 0)
    table.add(
        {fmt::format("batch of {}", result.batch), fmt::format("{:.3f} ms", result.ms_before), fmt::format("{:.3f} ms", result.ms_after)});
  return text + table.str() +
         fmt::format("Compared on {}; differences relative to the outputs of f32\nWrote {}\n",
                     counted(static_cast<std::uint64_t>(c.samples), "sample"), arguments.file);
}

std::string as_json(const Result& result, const Arguments& arguments) {
  using Json = nlohmann::ordered_json;
  Json nodes = Json::array(), activations = Json::array();
  for (const quantize::NodeReport& node : result.report.nodes)
    nodes.push_back({{"name", node.name}, {"op", node.op}, {"quantized", node.quantized}, {"reason", node.reason}});
  for (const quantize::ActivationReport& a : result.report.activations)
    activations.push_back({{"name", a.name}, {"low", a.low}, {"high", a.high}, {"scale", a.scale}, {"zero_point", a.zero_point}});
  const quantize::Comparison& c = result.comparison;
  const auto known = [](double value) { return value < 0 ? Json() : Json(value); };
  return dump({{"file", arguments.file},
               {"data", result.data},
               {"samples", result.report.samples},
               {"nodes", nodes},
               {"activations", activations},
               {"size_bytes", {{"f32", result.bytes_before}, {"quantized", result.bytes_after}}},
               {"test_samples", c.samples},
               {"accuracy", {{"f32", known(c.expected_accuracy)}, {"quantized", known(c.accuracy)}}},
               {"same_class", known(c.same_class)},
               {"largest_difference", c.largest_difference},
               {"rms_difference", c.rms_difference},
               {"batch", result.batch},
               {"latency_ms", {{"f32", result.ms_before}, {"quantized", result.ms_after}}}});
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const quantize::QuantizableOperator& op : quantize::quantizable_operators()) names.push_back(op.name + (op.by_default ? "" : "*"));
  return names;
}

}  // namespace

void add_quantize_verb(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  quantize::Options& options = arguments->options;
  CLI::App* command = app.add_subcommand("quantize", "write a model as an ONNX file of 8-bit integers, or with weights of fewer bits");
  command->add_option("model", arguments->model, "ONNX file, train.yaml, a folder of checkpoints, or the YAML of a checkpoint")
      ->required()
      ->type_name("MODEL");
  command->add_option("--out", arguments->file, "the file to write")->required()->type_name("FILE");
  arguments->data.add_to(*command);
  command->add_option("--calibration", arguments->calibration, "how ranges of activations follow from the samples")
      ->check(CLI::IsMember({"minmax", "percentile", "entropy"}))
      ->capture_default_str();
  command->add_option("--percentile", options.percentile, "percent of elements within the range, for --calibration percentile")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--activations", arguments->activations, "u8, or i8 with the zero point 0")
      ->check(CLI::IsMember({"u8", "i8"}))
      ->capture_default_str();
  command->add_option("--weights-only", options.weights_only_bits, "leave activations in f32, and store weights in that many bits")
      ->type_name("BITS")
      ->check(CLI::IsMember({4, 8}));
  command->add_option("--block", options.block_size, "--weights-only 4: elements of a column that share a scale, 16, 32, 64, ...")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--exclude", options.exclude, "glob of nodes that stay in f32, by the names that `tenon explain` prints; repeatable")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--op-types", options.op_types,
          fmt::format("operators to quantise, of {} (default: those without *; +A,+B: and these)", fmt::join(operator_names(), ", ")))
      ->delimiter(',')
      ->type_name("A,B");
  command->add_option("--batch", options.fixed_batch, "fixed batch size (default: any, if the model leaves it open)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_option("--opset", options.opset, "version of the operators")->type_name("N")->capture_default_str();
  command->add_option("--checkpoint", arguments->checkpoint, "weights: the YAML of a checkpoint, or a folder of checkpoints")
      ->type_name("PATH");
  add_format(*command, arguments->format, {"text", "json"});
  arguments->common.add_to(*command);
  command->callback([arguments] {
    using quantize::Calibration;
    for (const Calibration calibration : {Calibration::minmax, Calibration::percentile, Calibration::entropy}) {
      if (arguments->calibration == quantize::name_of(calibration)) arguments->options.calibration = calibration;
    }
    arguments->options.activations = arguments->activations == "i8" ? DType::i8 : DType::u8;
    const Result result = run_quantize(*arguments);
    print(arguments->format == "json" ? as_json(result, *arguments) : as_text(result, *arguments));
  });
}

}  // namespace tenon::cli
