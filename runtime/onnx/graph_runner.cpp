// SPDX-License-Identifier: Apache-2.0
#include "onnx/graph_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include <tenon/error.h>

#include "exec/device_state.h"
#include "exec/import.h"

namespace tenon::onnx {
namespace {

InputTypes types_of(const NamedTensors& values) {
  InputTypes types;
  for (const auto& [name, tensor] : values) types[name] = {tensor.dtype(), tensor.shape(), tensor};
  return types;
}

/// The values that are inputs of a graph, in its order.
std::vector<Tensor> inputs_of(const Graph& graph, const NamedTensors& values) {
  std::vector<Tensor> tensors;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::input) tensors.push_back(values.at(value.name));
  }
  return tensors;
}

}  // namespace

GraphRunner::GraphRunner(LoadedFile& loaded, const GraphRecord& graph, std::map<std::string, Tensor> constants)
    : loaded_(loaded), graph_(graph), constants_(std::move(constants)) {
  std::set<std::string_view> initializers;
  for (const TensorRecord& record : graph.initializers) initializers.insert(record.name);
  for (const SparseTensorRecord& record : graph.sparse_initializers) initializers.insert(record.values.name);
  for (const ValueRecord& input : graph.inputs) {
    if (!initializers.contains(input.name)) inputs_.emplace_back(input.name);
  }
}

bool GraphRunner::is_specialised(const std::string& input) const {
  return std::ranges::find(specialised_, input) != specialised_.end();
}

Graph GraphRunner::import(const InputTypes& inputs, Segments segments, const std::vector<std::string>& outputs) {
  Graph graph;
  const Evaluate evaluate = evaluate_on_host(loaded_.context, loaded_.device());
  const ImportOptions options{.graph = &graph_,
                              .constants = constants_,
                              .max_unrolled_iterations = loaded_.options.max_unrolled_iterations,
                              .outputs = outputs,
                              .segments = segments == Segments::allowed,
                              .output_boundary = !outputs.empty()};
  Importer(*loaded_.file, loaded_.weights, evaluate, inputs, options, graph).run();
  loaded_.patterns = {};
  return graph::recognize_patterns(std::move(graph), &loaded_.patterns);
}

/// Calls f(types) with the types of the inputs, again with the elements of further inputs until it needs no more.
template <class F>
auto GraphRunner::with_elements(const InputTypes& given, const F& f) {
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
                                  loaded_.file->name(), name));
        }
        specialised_.push_back(name);
      }
    }
  }
}

Program& GraphRunner::find(const InputTypes& given, Segments segments, const std::vector<std::string>& outputs) {
  exec::ProgramKey& key = loaded_.key;
  return with_elements(given, [&](const InputTypes& types) -> std::reference_wrapper<Program> {
    key.clear();
    key.add(&graph_);
    const auto add_name = [&](const std::string& name) {
      key.add(name.size());
      key.add_bytes(name.data(), name.size());
    };
    key.add(outputs.size());
    for (const std::string& output : outputs) add_name(output);
    for (const auto& [name, type] : types) {
      add_name(name);
      key.add(type.dtype, type.shape);
      key.add(type.elements.defined());
      if (type.elements.defined()) {
        const Tensor elements = type.elements.to_host().contiguous();
        key.add_bytes(elements.raw(), static_cast<std::size_t>(elements.size_bytes()));
      }
    }
    return loaded_.programs.get(key.bytes(), [&] { return compile(import(types, segments, outputs)); });
  });
}

Graph GraphRunner::to_graph(const InputTypes& inputs) {
  Graph graph = with_elements(inputs, [&](const InputTypes& types) { return import(types, Segments::refused); });
  set_parameters(graph);
  return graph;
}

Program GraphRunner::compile(const Graph& graph) {
  set_parameters(graph);
  return Program(loaded_.context, graph, {.device = loaded_.options.device, .parameters = loaded_.store});
}

/// Creates the parameters that no earlier program has.
void GraphRunner::set_parameters(const Graph& graph) {
  const Device device = loaded_.device();
  // What a device borrows counts against no limit, and a GPU would read it over the bus in every run.
  const bool borrows = device.state()->host_addressable() && device.memory().limit_size_bytes == 0;
  bool any = false;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind != ValueKind::parameter || loaded_.store->has(value.name)) continue;
    const Tensor& weight = loaded_.weights.all().at(value.name);
    // What was copied from the file needs no other copy. Pages of the file are read-only.
    const Tensor imported = !borrows || loaded_.file->views(weight) ? Tensor() : exec::import_tensor(weight, device);
    if (imported.defined()) {
      exec::keep_exporter(imported, weight.storage());
      loaded_.store->adopt(value.name, imported);
    } else {
      loaded_.store->create(value.name, device, value.dtype, value.shape);
      loaded_.store->set(value.name, weight);
    }
    any = true;
  }
  if (any) loaded_.file->release_pages();
}

const std::vector<Tensor>& GraphRunner::run(const NamedTensors& inputs, const RunOptions& options) {
  const std::vector<Tensor>* results = nullptr;
  run(inputs, options, [&](Program& program, std::span<const Tensor> operands) { results = &program.run(operands, options); });
  return *results;
}

void GraphRunner::run(const NamedTensors& inputs, std::span<Tensor> outputs, const RunOptions& options) {
  run(inputs, options, [&](Program& program, std::span<const Tensor> operands) { run_to(program, operands, outputs, options); });
}

void GraphRunner::run_to(Program& program, std::span<const Tensor> inputs, std::span<Tensor> outputs, const RunOptions& options) const {
  std::vector<Tensor> results;
  bool replayed = true;  // the run may be a recorded one, which writes to the program's memory
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& given = outputs[i];
    results.push_back(given.defined() && program.accepts_output(i, given) ? given : program.make_output(i));
    const Tensor& result = results.back();
    if (given.defined() && (given.dtype() != result.dtype() || given.shape() != result.shape())) {
      throw Error(fmt::format("{}: output '{}': expected a tensor {}{} for the result, got {}", loaded_.file->name(),
                              graph_.outputs[i].name, name_of(result.dtype()), result.shape().str(), given.str()));
    }
    replayed = replayed && !given.defined() && !result.on_host();
  }
  if (replayed) {
    const std::vector<Tensor>& own = program.run(inputs, options);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].copy_from(own[i]);
  } else {
    program.run(inputs, results, options);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) {
      outputs[i] = results[i];
    } else if (outputs[i].address() != results[i].address()) {
      outputs[i].copy_from(results[i]);
    }
  }
}

void GraphRunner::run(const NamedTensors& inputs, const RunOptions& options, const RunLast& run_last) {
  if (!segments_.empty()) return run_in_segments(inputs, options, run_last);
  try {
    Program& program = find(types_of(inputs), Segments::allowed);
    std::vector<Tensor> tensors;
    if (inputs.size() == inputs_.size()) {
      for (const std::string& name : inputs_) tensors.push_back(inputs.at(name));
    } else {  // values of the graphs around a body are inputs, too
      tensors = inputs_of(program.graph(), inputs);
    }
    return run_last(program, tensors);
  } catch (const ValuesNeeded& needed) {
    segments_.push_back(needed);
  }
  run_in_segments(inputs, options, run_last);
}

void GraphRunner::run_in_segments(NamedTensors values, const RunOptions& options, const RunLast& run_last) {
  for (std::size_t i = 0;;) {
    try {
      for (; i < segments_.size(); ++i) run_segment(segments_[i], values, options);
      Program& program = find(types_of(values), Segments::allowed);
      return run_last(program, inputs_of(program.graph(), values));
    } catch (const ValuesNeeded& needed) {
      const auto is_same = [&](const ValuesNeeded& segment) {
        return segment.values == needed.values && segment.results == needed.results;
      };
      if (std::ranges::any_of(segments_, is_same)) throw Error(Status::unsupported, needed.problem);
      segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(i), needed);
    }
  }
}

void GraphRunner::run_segment(const ValuesNeeded& segment, NamedTensors& values, const RunOptions& options) {
  std::vector<std::string> missing;
  std::ranges::copy_if(segment.values, std::back_inserter(missing), [&](const std::string& name) { return !values.contains(name); });
  if (!missing.empty()) {
    Program& program = find(types_of(values), Segments::allowed, missing);
    const std::vector<Tensor>& results = program.run(inputs_of(program.graph(), values), options);
    const std::vector<GraphOutput>& outputs = program.graph().outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) values[outputs[i].name] = results[i];
  }
  if (segment.control != nullptr) {
    if (segment.control->op == "Loop") return run_loop(segment, values, options);
    return run_branch(segment, values, options);
  }
  if (!segment.results.empty()) return evaluate_node(segment, values);
  for (const std::string& name : segment.values) {
    if (!is_specialised(name)) specialised_.push_back(name);
  }
}

void GraphRunner::evaluate_node(const ValuesNeeded& segment, NamedTensors& values) {
  InputTypes types;
  for (const std::string& name : segment.values) {
    const Tensor elements = values.at(name).to_host().contiguous();
    types[name] = {elements.dtype(), elements.shape(), elements};
  }
  Graph graph;
  const Evaluate evaluate = evaluate_on_host(loaded_.context, loaded_.device());
  const ImportOptions options{.graph = &graph_, .constants = constants_, .outputs = segment.results};
  Importer(*loaded_.file, loaded_.weights, evaluate, types, options, graph).run();
  const std::vector<Tensor> results = evaluate(graph, inputs_of(graph, values));
  for (std::size_t i = 0; i < results.size(); ++i) values[graph.outputs()[i].name] = results[i];
}

GraphRunner& GraphRunner::body_of(const ValuesNeeded& segment, const GraphRecord& body) {
  std::unique_ptr<GraphRunner>& runner = bodies_[&body];
  if (runner == nullptr) runner = std::make_unique<GraphRunner>(loaded_, body, segment.constants);
  return *runner;
}

}  // namespace tenon::onnx
