// SPDX-License-Identifier: Apache-2.0
#include "cli/quantization_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include <tenon/error.h>
#include <tenon/npy.h>
#include <tenon/safetensors.h>

#include "platform/path.h"
#include "train/datasets/dataset_rules.h"
#include "train/datasets/datasets.h"

namespace tenon::cli {
namespace {

/// Samples (n, ...) in the shape and dtype of the model's input.
Tensor fitted(const Tensor& samples, const onnx::ValueType& input, const std::string& from) {
  const Tensor typed = samples.dtype() == input.dtype ? samples : samples.to(input.dtype);
  if (!input.ranked || input.shape.empty()) return typed;
  std::vector<std::int64_t> dims = {samples.shape()[0]};
  bool fits = samples.shape().rank() == input.shape.size();
  std::int64_t count = 1;
  for (std::size_t i = 1; i < input.shape.size(); ++i) {
    dims.push_back(input.shape[i].size);
    count = input.shape[i].is_fixed() && count > 0 ? count * input.shape[i].size : -1;
    if (fits && input.shape[i].is_fixed() && samples.shape()[i] != input.shape[i].size) fits = false;
  }
  if (fits) return typed;
  // The same elements with axes of size 1 more or less, or flattened.
  if (count >= 0 && count * samples.shape()[0] == samples.count()) return typed.contiguous().reshape(Shape(std::span(dims)));
  throw Error(fmt::format("--data: expected samples for the model's input {}, got {} of {}", input.str(), samples.str(), from));
}

/// The samples of a data set by the names of the model's inputs; the only input takes those of the data set's only one.
quantize::Samples samples_of(std::shared_ptr<const Dataset> data, const std::vector<onnx::ValueType>& inputs, std::int64_t count) {
  const auto index_of = [&](const onnx::ValueType& input) {
    if (inputs.size() == 1 && data->inputs().size() == 1) return std::size_t{0};
    const auto found = std::ranges::find(data->inputs(), input.name, &SampleType::name);
    if (found != data->inputs().end()) return static_cast<std::size_t>(found - data->inputs().begin());
    std::vector<std::string> names;
    for (const SampleType& type : data->inputs()) names.push_back(type.name);
    throw Error(fmt::format("--data: expected samples for the model's input '{}', got those of {}", input.name, fmt::join(names, ", ")));
  };
  std::vector<std::pair<onnx::ValueType, std::size_t>> bindings;
  for (const onnx::ValueType& input : inputs) bindings.emplace_back(input, index_of(input));
  return {.count = std::min(count, data->size()), .read = [data = std::move(data), bindings](std::int64_t begin, std::int64_t end) {
            std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
            std::iota(indices.begin(), indices.end(), begin);
            std::vector<Tensor> x, y;
            for (const SampleType& type : data->inputs()) x.push_back(Tensor::empty(type.dtype, type.shape.with_batch(end - begin)));
            for (const SampleType& type : data->targets()) y.push_back(Tensor::empty(type.dtype, type.shape.with_batch(end - begin)));
            data->gather(indices, x, y);
            NamedTensors named;
            for (const auto& [input, i] : bindings) named[input.name] = fitted(x[i], input, data->name());
            return named;
          }};
}

/// The labels of the first samples of a classification problem; else undefined.
Tensor labels_of(const Dataset& data, std::int64_t count) {
  if (!data.num_classes() || data.targets().size() != 1 || data.y_type().dtype != DType::i64 || data.y_type().shape.rank() != 0) return {};
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<Tensor> x, y = {Tensor::empty(DType::i64, {count})};
  for (const SampleType& type : data.inputs()) x.push_back(Tensor::empty(type.dtype, type.shape.with_batch(count)));
  data.gather(indices, x, y);
  return y[0];
}

/// Arrays for each input of the model by its name; nothing: the path has no such arrays.
std::optional<NamedTensors> arrays_of(const std::string& path, const std::vector<onnx::ValueType>& inputs) {
  const std::filesystem::path file = platform::path_of(path);
  NamedTensors arrays;
  if (std::filesystem::is_directory(file)) {
    for (const onnx::ValueType& input : inputs) {
      const std::filesystem::path array = file / platform::path_of(input.name + ".npy");
      if (!std::filesystem::exists(array)) return {};
      arrays[input.name] = load_npy(platform::text_of(array));
    }
    return arrays;
  }
  if (file.extension() == ".npy" && inputs.size() == 1) return NamedTensors{{inputs[0].name, load_npy(path)}};
  std::vector<NamedTensor> found;
  if (file.extension() == ".npz") found = load_npz(path);
  if (file.extension() == ".safetensors") found = load_safetensors(path).tensors;
  for (const onnx::ValueType& input : inputs) {
    const auto array = std::ranges::find(found, input.name, &NamedTensor::name);
    if (array == found.end()) {
      if (file.extension() != ".safetensors") return {};
      std::vector<std::string> names;
      for (const NamedTensor& tensor : found) names.push_back(tensor.name);
      throw Error(
          fmt::format("--data: {}: expected a tensor for the model's input '{}', got {}", path, input.name, fmt::join(names, ", ")));
    }
    arrays[input.name] = array->tensor;
  }
  return arrays;
}

/// The same samples for calibration and comparison.
QuantizationData of_arrays(const NamedTensors& arrays, const std::vector<onnx::ValueType>& inputs, const DataOptions& options) {
  std::optional<std::int64_t> count;
  NamedTensors all;
  for (const onnx::ValueType& input : inputs) {
    const Tensor& array = arrays.at(input.name);
    if (array.shape().rank() == 0 || (count && *count != array.shape()[0]))
      throw Error(fmt::format("--data: expected arrays (samples, ...) of as many samples each, got {} for the input '{}'", array.str(),
                              input.name));
    count = array.shape()[0];
    all[input.name] = fitted(array, input, options.path);
  }
  const auto first = [&](std::int64_t n) {
    return quantize::Samples{.count = std::min(n, count.value_or(0)), .read = [all](std::int64_t begin, std::int64_t end) {
                               NamedTensors part;
                               for (const auto& [name, array] : all) part[name] = array.slice(0, begin, end).contiguous();
                               return part;
                             }};
  };
  const quantize::Samples calibration = first(options.samples);
  return {calibration,
          first(options.test_samples),
          {},
          fmt::format("{} of {} samples of {}", calibration.count, count.value_or(0), options.path)};
}

/// The source whose files are at the path; Source::images only with images.
const train::DatasetRule& source_of(const std::string& path) {
  std::vector<std::string> expected;
  for (const DataSource source : {DataSource::idx, DataSource::cifar10, DataSource::npz, DataSource::images, DataSource::csv}) {
    const train::DatasetRule& rule = train::rule_of(source);
    expected.emplace_back(rule.expected);
    try {
      if (!rule.files(path, Split::train).empty()) return rule;
    } catch (const Error&) {  // its files are not there
    }
  }
  throw Error(
      fmt::format("--data: {}: expected arrays named as the inputs of the model (.npz, .safetensors, a folder of .npy), an .npy file of "
                  "its only input, {}",
                  path, fmt::join(expected, ", ")));
}

}  // namespace

void DataOptions::add_to(CLI::App& command) {
  command.add_option("--data", path, "samples: a folder or file of data, or of arrays by the names of the inputs (docs/onnx.md)")
      ->type_name("PATH");
  command.add_option("--samples", samples, "samples that ranges are observed on, from the training part")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--test-samples", test_samples, "samples of the test part that both models are compared on")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--normalize", normalize, "ONNX file: how samples are scaled (default: unit for bytes, none for numbers)")
      ->check(CLI::IsMember({"unit", "none"}));
  command.add_option("--mean", mean, "ONNX file: subtracted from samples, of bytes after the division by 255; one, or one per channel")
      ->delimiter(',')
      ->type_name("A,B,C");
  command.add_option("--std", deviation, "ONNX file: what samples are then divided by")->delimiter(',')->type_name("A,B,C");
}

QuantizationData DataOptions::of_run(const DataSplits& data, const onnx::Model& model) const {
  QuantizationData result;
  result.calibration = samples_of(data.train, model.inputs(), samples);
  result.test = samples_of(data.test, model.inputs(), test_samples);
  result.labels = labels_of(*data.test, result.test.count);
  result.description = fmt::format("{} of {} samples of {}", result.calibration.count, data.train->size(), data.train->name());
  return result;
}

QuantizationData DataOptions::of_files(const onnx::Model& model) const {
  if (path.empty())
    throw Error("--data: expected a folder or file of samples for the inputs of the model, on which both models are compared, got none");
  if (const std::optional<NamedTensors> arrays = arrays_of(path, model.inputs())) return of_arrays(*arrays, model.inputs(), *this);
  const train::DatasetRule& rule = source_of(path);
  DataDefinition definition;
  definition.source = rule.source;
  definition.directory = platform::text_of(std::filesystem::absolute(platform::path_of(path)));
  definition.where = "--data";
  definition.normalize = std::nullopt;
  if (!normalize.empty()) definition.normalize = normalize == "unit" ? Normalize::unit : Normalize::none;
  if (!mean.empty() || !deviation.empty()) {
    definition.normalize = Normalize::given;
    definition.mean = mean.empty() ? std::vector<double>{0} : mean;
    definition.deviation = deviation.empty() ? std::vector<double>{1} : deviation;
  }
  const std::vector<onnx::Dimension>& shape = model.inputs()[0].shape;
  if (rule.source == DataSource::images && shape.size() == 4 && shape[2].is_fixed() && shape[3].is_fixed()) {
    definition.image = {.resize = {std::max(shape[2].size, shape[3].size)},
                        .crop = {shape[2].size, shape[3].size},
                        .channels = shape[1].is_fixed() ? shape[1].size : 0};
  }
  if (rule.source == DataSource::npz) {
    definition.input_arrays.clear();
    if (model.inputs().size() == 1) definition.input_arrays = {{model.inputs()[0].name, "x"}};
    for (const onnx::ValueType& input : model.inputs()) {
      if (model.inputs().size() > 1) definition.input_arrays.emplace_back(input.name, input.name);
    }
  }
  std::vector<std::string> test_files;
  try {
    test_files = rule.files(path, Split::test);
  } catch (const Error&) {  // there is no test part
  }
  if (test_files.empty() && rule.takes("test_split")) definition.test_split = 0.5;
  return of_run(train::make_data(definition, "", 1), model);
}

}  // namespace tenon::cli
