// SPDX-License-Identifier: Apache-2.0
// Programs of the C API.
#include "c/program.h"

#include <algorithm>

#include <tenon/config.h>
#include <tenon/npy.h>
#include <tenon/safetensors.h>

#include "c/graph.h"
#include "c/json.h"
#include "c/run.h"
#include "exec/device_state.h"

TenonProgram::TenonProgram(tenon::Program program, const tenon::Graph& graph) : Object(kind_of), value(std::move(program)) {
  for (const tenon::ValueInfo& info : graph.values()) {
    if (info.kind == tenon::ValueKind::input) inputs.push_back({info.name, info.dtype, info.shape});
  }
  for (const tenon::GraphOutput& output : graph.outputs()) {
    const tenon::ValueInfo& info = graph.info(output.value);
    outputs.push_back({output.name, info.dtype, info.shape});
  }
  bound_inputs.resize(inputs.size());
  bound_outputs.resize(outputs.size());
}

using namespace tenon;
using namespace tenon::c;

namespace {

Precision precision_of(const std::string& text) {
  for (const Precision precision : {Precision::float32, Precision::tf32, Precision::mixed_bfloat16, Precision::mixed_float16}) {
    if (text == name_of(precision)) return precision;
  }
  throw BadArgument("options.precision: expected float32, tf32, mixed_bfloat16 or mixed_float16, got '" + text + "'");
}

ProgramOptions program_options(const TenonProgramOptions& given) {
  constexpr std::uint32_t known = TENON_PROGRAM_UNOPTIMIZED | TENON_PROGRAM_FREEZE | TENON_PROGRAM_UPDATES_LAST;
  if ((given.flags & ~known) != 0) throw BadArgument("options.flags: expected TENON_PROGRAM_* flags, got " + std::to_string(given.flags));
  ProgramOptions options;
  options.optimize = (given.flags & TENON_PROGRAM_UNOPTIMIZED) == 0;
  options.freeze = (given.flags & TENON_PROGRAM_FREEZE) != 0;
  options.updates_last = (given.flags & TENON_PROGRAM_UPDATES_LAST) != 0;
  options.device = optional_text(given.device);
  if (given.precision != nullptr) options.precision = precision_of(given.precision);
  if (given.parameters != nullptr) options.parameters = get(given.parameters, "options.parameters").value;
  return options;
}

/// Errors  a file of tensors that is neither .npz nor .safetensors.
bool is_npz(const std::string& path) {
  if (path.ends_with(".npz")) return true;
  if (!path.ends_with(".safetensors")) throw BadArgument("path: expected a .safetensors or .npz file, got '" + path + "'");
  return false;
}

Json json_of(const std::vector<TenonProgram::Port>& ports) {
  Json json = Json::array();
  for (const TenonProgram::Port& port : ports)
    json.push_back({{"name", port.name}, {"dtype", tenon::name_of(port.dtype)}, {"shape", c::json_of(port.shape)}});
  return json;
}

void expect_count(std::uint64_t given, std::size_t expected, const char* argument) {
  if (given != expected)
    throw BadArgument(std::string(argument) + ": expected " + std::to_string(expected) + ", got " + std::to_string(given));
}

/// Runs and gives results that the caller has no tensors for.
void run(TenonProgram& program, const std::vector<Tensor>& inputs, TenonTensor** outputs, std::uint64_t output_count,
         const TenonRunOptions* options) {
  expect_count(output_count, program.outputs.size(), "output_count");
  std::vector<Tensor> results = given_outputs(outputs, output_count);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) results[i] = program.value.make_output(i);
  }
  program.value.run(inputs, results, run_options(options));
  give_missing(results, outputs);
}

void expect_index(std::uint64_t index, std::size_t count) {
  if (index >= count) throw BadArgument("index: expected one below " + std::to_string(count) + ", got " + std::to_string(index));
}

}  // namespace

TenonError* tenon_parameters_create(TenonParameters** out_parameters) {
  return guard(__func__, [&] { *required(out_parameters, "out_parameters") = new TenonParameters(std::make_shared<ParameterStore>()); });
}

TenonError* tenon_parameters_describe(const TenonParameters* parameters, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const ParameterStore& store = *get(parameters, "parameters").value;
    Json json = Json::array();
    for (const auto& [name, tensor] : store.all()) {
      const auto* device = dynamic_cast<const exec::DeviceState*>(tensor.storage()->device.get());
      json.push_back({{"name", name},
                      {"dtype", tenon::name_of(tensor.dtype())},
                      {"shape", c::json_of(tensor.shape())},
                      {"device", device == nullptr ? Json() : Json(device->info.name)},
                      {"is_set", !store.unset().contains(name)}});
    }
    *out_json = new_json(json);
  });
}

TenonError* tenon_parameters_get(const TenonParameters* parameters, const char* name, TenonTensor** out_tensor) {
  return guard(__func__, [&] {
    required(out_tensor, "out_tensor");
    *out_tensor = new TenonTensor(get(parameters, "parameters").value->get(text(name, "name")), true);
  });
}

TenonError* tenon_parameters_set(const TenonParameters* parameters, const char* name, const TenonTensor* tensor) {
  return guard(__func__, [&] { get(parameters, "parameters").value->set(text(name, "name"), get(tensor, "tensor").value); });
}

TenonError* tenon_parameters_load(const char* path, TenonParameters** out_parameters) {
  return guard(__func__, [&] {
    required(out_parameters, "out_parameters");
    auto store = std::make_shared<ParameterStore>();
    const std::string file = text(path, "path");
    for (const NamedTensor& each : is_npz(file) ? load_npz(file) : load_safetensors(file).tensors) store->adopt(each.name, each.tensor);
    *out_parameters = new TenonParameters(std::move(store));
  });
}

TenonError* tenon_tensors_save(const char* path, const char* const* names, const TenonTensor* const* tensors, uint64_t count) {
  return guard(__func__, [&] {
    const std::string file = text(path, "path");
    const std::span<const char* const> given_names = array(names, count, "names");
    const std::span<const TenonTensor* const> given = array(tensors, count, "tensors");
    std::vector<NamedTensor> named;
    for (std::size_t i = 0; i < given.size(); ++i) named.push_back({text(given_names[i], "names"), get(given[i], "tensors").value});
    if (is_npz(file)) {
      save_npz(file, named);
    } else {
      save_safetensors(file, named);
    }
  });
}

TenonError* tenon_program_create(const TenonContext* context, const TenonGraph* graph, const TenonProgramOptions* options,
                                 TenonProgram** out_program) {
  return guard(__func__, [&] {
    required(out_program, "out_program");
    const Graph& own = get(graph, "graph").value;
    Program program(get(context, "context").value, own, program_options(options_of(options, "options")));
    *out_program = new TenonProgram(std::move(program), own);
  });
}

TenonError* tenon_program_describe(const TenonProgram* program, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const TenonProgram& own = get(program, "program");
    Json memory = Json::array();
    for (const MemoryPlan& plan : own.value.memory()) {
      memory.push_back({{"device", plan.device},
                        {"parameters_size_bytes", plan.parameters_size_bytes()},
                        {"own_size_bytes", plan.own_size_bytes()},
                        {"peak_size_bytes", plan.peak_size_bytes()}});
    }
    *out_json = new_json({{"inputs", json_of(own.inputs)}, {"outputs", json_of(own.outputs)}, {"memory", memory}});
  });
}

TenonError* tenon_program_explain(const TenonProgram* program, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    *out_json = new_text(get(program, "program").value.placement().json());
  });
}

TenonError* tenon_program_parameters(const TenonProgram* program, TenonParameters** out_parameters) {
  return guard(__func__, [&] {
    required(out_parameters, "out_parameters");
    *out_parameters = new TenonParameters(get(program, "program").value.parameters());
  });
}

TenonError* tenon_program_run(TenonProgram* program, const TenonTensor* const* inputs, uint64_t input_count, TenonTensor** outputs,
                              uint64_t output_count, const TenonRunOptions* options) {
  return guard(__func__, [&] {
    TenonProgram& own = get(program, "program");
    expect_count(input_count, own.inputs.size(), "input_count");
    run(own, tensors(inputs, input_count, "inputs"), outputs, output_count, options);
  });
}

TenonError* tenon_program_run_named(TenonProgram* program, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                                    TenonTensor** outputs, uint64_t output_count, const TenonRunOptions* options) {
  return guard(__func__, [&] {
    TenonProgram& own = get(program, "program");
    const std::vector<std::string> given = texts(names, input_count, "names");
    const std::vector<Tensor> values = tensors(inputs, input_count, "inputs");
    std::vector<Tensor> in_order;
    for (const TenonProgram::Port& port : own.inputs) {
      const auto found = std::ranges::find(given, port.name);
      if (found == given.end()) throw BadArgument("names: expected the input '" + port.name + "' too");
      in_order.push_back(values[static_cast<std::size_t>(found - given.begin())]);
    }
    for (const std::string& name : given) {
      if (std::ranges::count(given, name) > 1) throw BadArgument("names: '" + name + "' is given twice");
      if (std::ranges::find(own.inputs, name, &TenonProgram::Port::name) == own.inputs.end())
        throw BadArgument("names: the program has no input '" + name + "'");
    }
    run(own, in_order, outputs, output_count, options);
  });
}

TenonError* tenon_program_bind_input(TenonProgram* program, uint64_t index, const TenonTensor* tensor) {
  return guard(__func__, [&] {
    TenonProgram& own = get(program, "program");
    expect_index(index, own.inputs.size());
    own.bound_inputs[static_cast<std::size_t>(index)] = get(tensor, "tensor").value;
  });
}

TenonError* tenon_program_bind_output(TenonProgram* program, uint64_t index, const TenonTensor* tensor) {
  return guard(__func__, [&] {
    TenonProgram& own = get(program, "program");
    const auto i = static_cast<std::size_t>(index);
    expect_index(index, own.outputs.size());
    own.bound_outputs[i] = tensor == nullptr ? own.value.make_output(i) : writable(tensor, "tensor");
  });
}

TenonError* tenon_program_bound_output(const TenonProgram* program, uint64_t index, TenonTensor** out_tensor) {
  return guard(__func__, [&] {
    required(out_tensor, "out_tensor");
    const TenonProgram& own = get(program, "program");
    expect_index(index, own.outputs.size());
    const Tensor& bound = own.bound_outputs[static_cast<std::size_t>(index)];
    if (!bound.defined()) throw BadArgument("index: output '" + own.outputs[static_cast<std::size_t>(index)].name + "' is not bound");
    *out_tensor = new TenonTensor(bound);
  });
}

TenonError* tenon_program_run_bound(TenonProgram* program, const TenonRunOptions* options) {
  return guard(__func__, [&] {
    TenonProgram& own = get(program, "program");
    const auto expect_bound = [](const std::vector<Tensor>& bound, const std::vector<TenonProgram::Port>& ports, const char* what) {
      for (std::size_t i = 0; i < bound.size(); ++i) {
        if (!bound[i].defined()) throw BadArgument(std::string("program: ") + what + " '" + ports[i].name + "' is not bound");
      }
    };
    expect_bound(own.bound_inputs, own.inputs, "input");
    expect_bound(own.bound_outputs, own.outputs, "output");
    own.value.run(own.bound_inputs, own.bound_outputs, run_options(options));
  });
}

TenonError* tenon_program_enable_profile(TenonProgram* program, uint32_t enabled) {
  return guard(__func__, [&] { get(program, "program").value.enable_profile(enabled != 0); });
}

TenonError* tenon_program_profile(const TenonProgram* program, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    Json json = Json::array();
    for (const Program::KernelTime& time : get(program, "program").value.profile()) {
      json.push_back({{"node", time.node},
                      {"op", time.op},
                      {"device", time.device},
                      {"algorithm", time.algorithm},
                      {"nodes", time.nodes},
                      {"duration_ns", time.duration_ns},
                      {"begin_ns", time.begin_ns},
                      {"flops", time.flops},
                      {"size_bytes", time.size_bytes}});
    }
    *out_json = new_json(json);
  });
}
