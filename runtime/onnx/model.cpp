// SPDX-License-Identifier: Apache-2.0
// onnx/model.cpp - runs an ONNX model: programs by the shapes of inputs.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <tenon/error.h>
#include <tenon/onnx.h>

#include "core/state_of.h"
#include "exec/placement.h"
#include "exec/program_cache.h"
#include "graph/patterns/recognize.h"
#include "onnx/importer.h"
#include "onnx/model_file.h"
#include "onnx/report.h"

namespace tenon::onnx {

struct Model::State {
  static constexpr const char* owner = "ONNX model";  ///< for state_of

  Context context;
  LoadOptions options;
  std::shared_ptr<ModelFile> file;
  FileReport report;
  Weights weights;
  std::shared_ptr<ParameterStore> store = std::make_shared<ParameterStore>();
  std::vector<std::string> specialised;  ///< in the order in which they were found
  std::vector<ValuesNeeded> segments;    ///< what is computed before the rest is imported, in this order
  graph::PatternCounts patterns;         ///< of the graph imported last
  exec::ProgramCache programs;
  exec::ProgramKey key;  ///< of the last call, its memory used again

  State(const Context& c, std::shared_ptr<ModelFile> f, FileReport r, const LoadOptions& o)
      : context(c), options(o), file(std::move(f)), report(std::move(r)), weights(file), programs(o.limits) {}

  Device device() const { return options.device.empty() ? context.default_device() : context.device(options.device); }
  bool is_specialised(const std::string& input) const { return std::ranges::find(specialised, input) != specialised.end(); }

  /// Compares a tensor's type with that of the file.
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
      throw Error(fmt::format("{}: input '{}': expected {}, got {}{}", file->name(), type.name, type.str().substr(type.name.size() + 1),
                              name_of(dtype), shape.str()));
  }
  /// Checks the names.
  template <class Map>
  void check_names(const Map& given) const {
    std::vector<std::string> names;
    for (const ValueType& input : report.inputs) names.push_back(input.name);
    for (const ValueType& input : report.inputs) {
      if (!given.contains(input.name))
        throw Error(fmt::format("{}: input '{}' is missing; its inputs are: {}", file->name(), input.name, fmt::join(names, ", ")));
    }
    for (const auto& entry : given) {
      if (std::ranges::find(names, entry.first) == names.end())
        throw Error(fmt::format("{}: it has no input '{}'; its inputs are: {}", file->name(), entry.first, fmt::join(names, ", ")));
    }
  }

  /// The graph; throws ElementsNeeded. `in_segments`: also ValuesNeeded. `outputs`: of a segment; empty: the file's.
  Graph import(const InputTypes& inputs, bool in_segments = false, const std::vector<std::string>& outputs = {}) {
    Graph graph;
    const Evaluate evaluate = evaluate_on_host(context, device());
    const ImportOptions import_options{.max_unrolled_iterations = options.max_unrolled_iterations,
                                       .outputs = outputs,
                                       .segments = in_segments,
                                       .output_boundary = !outputs.empty()};
    Importer(*file, weights, evaluate, inputs, import_options, graph).run();
    patterns = {};
    return graph::recognize_patterns(std::move(graph), &patterns);
  }
  /// Calls f(types) with the types of the inputs, again with the elements of further inputs until it needs no more.
  template <class F>
  auto with_elements(const InputTypes& given, const F& f) {
    while (true) {
      InputTypes types = given;
      for (auto& [name, type] : types) {
        if (!is_specialised(name)) type.elements = {};
      }
      try {
        return f(types);
      } catch (const ElementsNeeded& needed) {
        for (const std::string& name : needed.inputs) {
          if (!given.at(name).elements.defined() || is_specialised(name)) {
            throw Error(fmt::format("{}: input '{}' determines shapes, axes, counts or branches: expected its elements, got its type alone",
                                    file->name(), name));
          }
          specialised.push_back(name);
        }
      }
    }
  }
  /// The program for inputs, and for values of the graph in a model that is run in segments.
  Program& find(const InputTypes& given, bool in_segments = false, const std::vector<std::string>& outputs = {}) {
    return with_elements(given, [&](const InputTypes& types) -> std::reference_wrapper<Program> {
      key.clear();
      const auto add_name = [&](const std::string& name) {
        key.add(name.size());
        key.add_bytes(name.data(), name.size());
      };
      for (const std::string& output : outputs) add_name(output);
      for (const auto& [name, type] : types) {
        if (types.size() > report.inputs.size()) add_name(name);
        key.add(type.dtype, type.shape);
        key.add(type.elements.defined());
        if (type.elements.defined()) {
          const Tensor elements = type.elements.to_host().contiguous();
          key.add_bytes(elements.raw(), static_cast<std::size_t>(elements.size_bytes()));
        }
      }
      return programs.get(key.bytes(), [&] { return compile(import(types, in_segments, outputs)); });
    });
  }

  static InputTypes types_of(const NamedTensors& values) {
    InputTypes types;
    for (const auto& [name, tensor] : values) types[name] = {tensor.dtype(), tensor.shape(), tensor};
    return types;
  }
  /// The values that are inputs of the graph, in its order.
  static std::vector<Tensor> inputs_of(const Graph& graph, const NamedTensors& values) {
    std::vector<Tensor> tensors;
    for (const ValueInfo& value : graph.values()) {
      if (value.kind == ValueKind::input) tensors.push_back(values.at(value.name));
    }
    return tensors;
  }

  /// The outputs for inputs whose names and types were checked.
  const std::vector<Tensor>& run(const NamedTensors& inputs, const RunOptions& run_options) {
    if (!segments.empty()) return run_segments(inputs, run_options);
    try {
      Program& program = find(types_of(inputs), true);
      std::vector<Tensor> tensors;
      for (const ValueType& input : report.inputs) tensors.push_back(inputs.at(input.name));
      return program.run(tensors, run_options);
    } catch (const ValuesNeeded& needed) {
      segments.push_back(needed);
    }
    return run_segments(inputs, run_options);
  }
  const std::vector<Tensor>& run_segments(NamedTensors values, const RunOptions& run_options) {
    for (std::size_t i = 0;;) {
      try {
        for (; i < segments.size(); ++i) run_segment(segments[i], values, run_options);
        Program& program = find(types_of(values), true);
        return program.run(inputs_of(program.graph(), values), run_options);
      } catch (const ValuesNeeded& needed) {
        const auto is_same = [&](const ValuesNeeded& segment) {
          return segment.values == needed.values && segment.results == needed.results;
        };
        if (std::ranges::any_of(segments, is_same)) throw Error(Status::unsupported, needed.problem);
        segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(i), needed);
      }
    }
  }
  /// Adds the values of a segment, what others need of what was computed for them, and the results of its node.
  void run_segment(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& run_options) {
    std::vector<std::string> missing;
    std::ranges::copy_if(segment.values, std::back_inserter(missing), [&](const std::string& name) { return !values.contains(name); });
    if (!missing.empty()) {
      Program& program = find(types_of(values), true, missing);
      const std::vector<Tensor>& results = program.run(inputs_of(program.graph(), values), run_options);
      const std::vector<GraphOutput>& outputs = program.graph().outputs();
      for (std::size_t i = 0; i < outputs.size(); ++i) values[outputs[i].name] = results[i];
    }
    if (segment.results.empty()) {
      for (const std::string& name : segment.values) {
        if (!is_specialised(name)) specialised.push_back(name);
      }
      return;
    }
    InputTypes types;
    for (const std::string& name : segment.values) {
      const Tensor elements = values.at(name).to_host().contiguous();
      types[name] = {elements.dtype(), elements.shape(), elements};
    }
    Graph graph;
    const Evaluate evaluate = evaluate_on_host(context, device());
    const ImportOptions import_options{.outputs = segment.results};
    Importer(*file, weights, evaluate, types, import_options, graph).run();
    const std::vector<Tensor> results = evaluate(graph, inputs_of(graph, values));
    for (std::size_t i = 0; i < results.size(); ++i) values[graph.outputs()[i].name] = results[i];
  }

  Program compile(const Graph& graph) {
    set_parameters(graph);
    return Program(context, graph, {.device = options.device, .parameters = store});
  }
  /// Creates the parameters that no earlier program has.
  void set_parameters(const Graph& graph) {
    bool any = false;
    for (const ValueInfo& value : graph.values()) {
      if (value.kind != ValueKind::parameter || store->has(value.name)) continue;
      store->create(value.name, device(), value.dtype, value.shape);
      store->set(value.name, weights.all().at(value.name));
      any = true;
    }
    if (any) file->release_pages();
  }
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::load(const std::filesystem::path& path, const Context& context, const LoadOptions& options) {
  if (options.limits.programs == 0) throw Error("LoadOptions: limits.programs is 0, expected at least 1, the program that runs");
  std::shared_ptr<ModelFile> file = ModelFile::open(path);
  FileReport report = report_of(*file);
  require_supported(file->name(), report);
  for (const TensorRecord& tensor : file->model().graph.initializers) file->check(tensor);
  return Model(std::make_unique<State>(context, std::move(file), std::move(report), options));
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
  for (const TensorRecord& record : s.file->model().graph.initializers) {
    tensors.push_back({std::string(record.name), s.weights.tensor(record)});
  }
  return tensors;
}

const std::vector<Tensor>& Model::run(const NamedTensors& inputs, const RunOptions& options) {
  State& s = state_of(state_);
  s.check_names(inputs);
  for (const ValueType& input : s.report.inputs) {
    const Tensor& tensor = inputs.at(input.name);
    if (!tensor.defined()) throw Error(fmt::format("{}: input '{}': expected a tensor, got an undefined one", s.file->name(), input.name));
    s.check(input, tensor.dtype(), tensor.shape());
  }
  return s.run(inputs, options);
}

Program& Model::bind(const InputTypes& inputs) {
  State& s = state_of(state_);
  s.check_names(inputs);
  for (const ValueType& input : s.report.inputs) s.check(input, inputs.at(input.name).dtype, inputs.at(input.name).shape);
  return s.find(inputs);
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
  s.check_names(inputs);
  for (const ValueType& input : s.report.inputs) s.check(input, inputs.at(input.name).dtype, inputs.at(input.name).shape);
  Graph graph = s.with_elements(inputs, [&](const InputTypes& types) { return s.import(types); });
  s.set_parameters(graph);
  return graph;
}

const std::vector<std::string>& Model::specialised_inputs() const {
  return state_of(state_).specialised;
}
const std::map<std::string, std::size_t>& Model::recognized_patterns() const {
  return state_of(state_).patterns.by_name;
}
const std::shared_ptr<ParameterStore>& Model::parameters() const {
  return state_of(state_).store;
}
const ProgramCounts& Model::counts() const {
  return state_of(state_).programs.counts();
}

}  // namespace tenon::onnx
