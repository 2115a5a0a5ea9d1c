// SPDX-License-Identifier: Apache-2.0
// onnx/model.cpp - an ONNX model: its file, and the runner of its graph.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include <tenon/error.h>
#include <tenon/onnx.h>

#include "core/state_of.h"
#include "exec/placement.h"
#include "onnx/graph_runner.h"
#include "onnx/model_file.h"
#include "onnx/report.h"
#include "text/counted.h"

namespace tenon::onnx {

struct Model::State {
  static constexpr const char* owner = "ONNX model";  ///< for state_of

  LoadedFile loaded;
  FileReport report;
  GraphRunner runner{loaded, loaded.file->model().graph};

  State(const Context& context, std::shared_ptr<ModelFile> file, FileReport r, const LoadOptions& options)
      : loaded(context, std::move(file), options), report(std::move(r)) {}

  /// Errors  operators and tensors that cannot be imported.
  static std::unique_ptr<State> of(std::shared_ptr<ModelFile> file, const Context& context, const LoadOptions& options) {
    if (options.limits.programs == 0) throw Error("LoadOptions: limits.programs is 0, expected at least 1, the program that runs");
    FileReport report = report_of(*file);
    require_supported(file->name(), report);
    warn_of_opset(file->name(), report.metadata);
    for (const TensorRecord& tensor : file->model().graph.initializers) file->check(tensor);
    return std::make_unique<State>(context, std::move(file), std::move(report), options);
  }

  /// Compares an input's type with that of the file.
  void check(const ValueType& type, DType dtype, const Shape& shape) const {
    const auto matches = [&] {
      if (!type.ranked) return true;
      if (shape.rank() != type.shape.size()) return false;
      for (std::size_t i = 0; i < shape.rank(); ++i) {
        if (type.shape[i].is_fixed() && type.shape[i].size != shape[i]) return false;
      }
      return true;
    };
    if (dtype != type.dtype || !matches())
      throw Error(fmt::format("{}: input '{}': expected {}, got {}{}", loaded.file->name(), type.name,
                              type.str().substr(type.name.size() + 1), name_of(dtype), shape.str()));
  }
  /// Compares all inputs with those of the file.
  void check(const InputTypes& inputs) const {
    check_names(inputs);
    for (const ValueType& input : report.inputs) check(input, inputs.at(input.name).dtype, inputs.at(input.name).shape);
  }
  /// The same for tensors.
  void check(const NamedTensors& inputs) const {
    check_names(inputs);
    for (const ValueType& input : report.inputs) {
      const Tensor& tensor = inputs.at(input.name);
      if (!tensor.defined())
        throw Error(fmt::format("{}: input '{}': expected a tensor, got an undefined one", loaded.file->name(), input.name));
      check(input, tensor.dtype(), tensor.shape());
    }
  }
  template <class Map>
  void check_names(const Map& given) const {
    std::vector<std::string> names;
    for (const ValueType& input : report.inputs) names.push_back(input.name);
    for (const ValueType& input : report.inputs) {
      if (!given.contains(input.name))
        throw Error(fmt::format("{}: input '{}' is missing; its inputs are: {}", loaded.file->name(), input.name, fmt::join(names, ", ")));
    }
    const auto& initializers = loaded.file->model().graph.initializers;
    const auto& inputs = loaded.file->model().graph.inputs;
    for (const auto& entry : given) {
      if (std::ranges::find(names, entry.first) != names.end()) continue;
      if (std::ranges::find(initializers, entry.first, &TensorRecord::name) != initializers.end() &&
          std::ranges::find(inputs, entry.first, &ValueRecord::name) != inputs.end())
        throw Error(
            fmt::format("{}: input '{}' has a default in the file, an initializer, which Tenon does not override: set the parameter, or "
                        "remove the initializer; inputs without one are: {}",
                        loaded.file->name(), entry.first, fmt::join(names, ", ")));
      throw Error(fmt::format("{}: it has no input '{}'; its inputs are: {}", loaded.file->name(), entry.first, fmt::join(names, ", ")));
    }
  }
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::load(const std::filesystem::path& path, const Context& context, const LoadOptions& options) {
  return Model(State::of(ModelFile::open(path), context, options));
}

Model Model::from_bytes(std::string bytes, const Context& context, const LoadOptions& options, const std::filesystem::path& folder) {
  return Model(State::of(ModelFile::of_bytes(std::move(bytes), folder), context, options));
}

const std::vector<ValueType>& Model::inputs() const {
  return state_of(state_).report.inputs;
}
const std::vector<ValueType>& Model::outputs() const {
  return state_of(state_).report.outputs;
}
const Metadata& Model::metadata() const {
  return state_of(state_).report.metadata;
}
const std::vector<OperatorCount>& Model::operators() const {
  return state_of(state_).report.operators;
}

std::vector<NamedTensor> Model::initializers() const {
  State& s = state_of(state_);
  std::vector<NamedTensor> tensors;
  for (const TensorRecord& record : s.loaded.file->model().graph.initializers) {
    const Tensor& tensor = s.loaded.weights.tensor(record);
    const std::string* weight = s.loaded.weights.name_of(tensor);
    const bool is_parameter = weight != nullptr && s.loaded.store->has(*weight);
    tensors.push_back({std::string(record.name), is_parameter ? s.loaded.store->get(*weight).to_host() : tensor});
  }
  return tensors;
}

const std::vector<Tensor>& Model::run(const NamedTensors& inputs, const RunOptions& options) {
  State& s = state_of(state_);
  s.check(inputs);
  return s.runner.run(inputs, options);
}

void Model::run(const NamedTensors& inputs, std::span<Tensor> outputs, const RunOptions& options) {
  State& s = state_of(state_);
  s.check(inputs);
  if (outputs.size() != s.report.outputs.size())
    throw Error(fmt::format("{}: expected {}, got {}", s.loaded.file->name(), counted(s.report.outputs.size(), "output"), outputs.size()));
  s.runner.run(inputs, outputs, options);
}

Program& Model::bind(const InputTypes& inputs) {
  State& s = state_of(state_);
  s.check(inputs);
  return s.runner.bind(inputs);
}

PlacementReport Model::explain(const InputTypes& inputs) {
  try {
    return bind(inputs).placement();
  } catch (const exec::PlacementError& error) {
    return error.report;
  }
}

Graph Model::to_graph(const InputTypes& inputs) {
  State& s = state_of(state_);
  s.check(inputs);
  return s.runner.to_graph(inputs);
}

const std::vector<std::string>& Model::specialised_inputs() const {
  return state_of(state_).runner.specialised();
}
const std::map<std::string, std::size_t>& Model::recognized_patterns() const {
  return state_of(state_).loaded.patterns.by_name;
}
const std::shared_ptr<ParameterStore>& Model::parameters() const {
  return state_of(state_).loaded.store;
}
const ProgramCounts& Model::counts() const {
  return state_of(state_).loaded.programs.counts();
}

}  // namespace tenon::onnx
