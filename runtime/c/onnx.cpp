// SPDX-License-Identifier: Apache-2.0
// ONNX models of the C API.
#include "c/onnx.h"

#include <memory>

#include "c/graph.h"
#include "c/json.h"
#include "c/program.h"
#include "c/run.h"
#include "platform/path.h"

using namespace tenon;
using namespace tenon::c;

namespace {

Json json_of(const std::vector<onnx::ValueType>& types) {
  Json json = Json::array();
  for (const onnx::ValueType& type : types) {
    Json shape = Json::array();
    for (const onnx::Dimension& dimension : type.shape) {
      shape.push_back(dimension.is_fixed() ? Json(dimension.size) : dimension.symbol.empty() ? Json() : Json(dimension.symbol));
    }
    json.push_back({{"name", type.name},
                    {"dtype", type.dtype == DType::none ? Json() : Json(tenon::name_of(type.dtype))},
                    {"type", type.type},
                    {"shape", type.ranked ? shape : Json()}});
  }
  return json;
}

Json json_of(const onnx::Metadata& metadata) {
  return {{"graph", metadata.graph},           {"producer", metadata.producer},       {"producer_version", metadata.producer_version},
          {"domain", metadata.domain},         {"description", metadata.description}, {"model_version", metadata.model_version},
          {"ir_version", metadata.ir_version}, {"opsets", metadata.opsets},           {"properties", metadata.properties}};
}

Json json_of(const std::vector<onnx::OperatorCount>& operators) {
  Json json = Json::array();
  for (const onnx::OperatorCount& of : operators) {
    json.push_back({{"domain", of.domain}, {"op", of.op}, {"opset", of.opset}, {"count", of.count}, {"reason", of.reason}});
  }
  return json;
}

/// Elements are given for small inputs, which may determine shapes.
onnx::InputTypes types_of(const NamedTensors& inputs) {
  constexpr std::int64_t max_elements = 64;
  onnx::InputTypes types;
  for (const auto& [name, tensor] : inputs) {
    onnx::InputType type{tensor.dtype(), tensor.shape()};
    if (tensor.count() <= max_elements) type.elements = tensor.to_host();
    types[name] = std::move(type);
  }
  return types;
}

onnx::LoadOptions load_options(const char* device) {
  onnx::LoadOptions options;
  options.device = optional_text(device);
  return options;
}

}  // namespace

NamedTensors tenon::c::named(const char* const* names, const TenonTensor* const* inputs, std::uint64_t count) {
  const std::vector<std::string> given = texts(names, count, "names");
  const std::vector<Tensor> values = tensors(inputs, count, "inputs");
  NamedTensors all;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!all.emplace(given[i], values[i]).second) throw BadArgument("names: '" + given[i] + "' is given twice");
  }
  return all;
}

TenonError* tenon_onnx_load(const TenonContext* context, const char* path, const char* device, TenonOnnx** out_onnx) {
  return guard(__func__, [&] {
    required(out_onnx, "out_onnx");
    const Context& on = get(context, "context").value;
    *out_onnx = new TenonOnnx(onnx::Model::load(platform::path_of(text(path, "path")), on, load_options(device)), on);
  });
}

TenonError* tenon_onnx_from_memory(const TenonContext* context, const void* data, uint64_t size_bytes, const char* folder,
                                   const char* device, TenonOnnx** out_onnx) {
  return guard(__func__, [&] {
    required(out_onnx, "out_onnx");
    const std::span<const char> bytes = array(static_cast<const char*>(data), size_bytes, "data");
    const Context& on = get(context, "context").value;
    std::string content(bytes.begin(), bytes.end());
    *out_onnx =
        new TenonOnnx(onnx::Model::from_bytes(std::move(content), on, load_options(device), platform::path_of(optional_text(folder))), on);
  });
}

TenonError* tenon_onnx_describe(const TenonOnnx* onnx, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const onnx::Model& model = get(onnx, "onnx").value;
    *out_json = new_json({{"inputs", json_of(model.inputs())},
                          {"outputs", json_of(model.outputs())},
                          {"metadata", json_of(model.metadata())},
                          {"operators", json_of(model.operators())}});
  });
}

TenonError* tenon_onnx_inspect(const char* path, char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    const onnx::FileReport report = onnx::inspect(platform::path_of(text(path, "path")));
    *out_json = new_json({{"inputs", json_of(report.inputs)},
                          {"outputs", json_of(report.outputs)},
                          {"metadata", json_of(report.metadata)},
                          {"operators", json_of(report.operators)}});
  });
}

TenonError* tenon_onnx_run(TenonOnnx* onnx, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                           TenonTensor** outputs, uint64_t output_count, const TenonRunOptions* options) {
  return guard(__func__, [&] {
    onnx::Model& model = get(onnx, "onnx").value;
    if (output_count != model.outputs().size()) {
      throw BadArgument("output_count: expected " + std::to_string(model.outputs().size()) + ", got " + std::to_string(output_count));
    }
    std::vector<Tensor> results = given_outputs(outputs, output_count);
    model.run(named(names, inputs, input_count), results, run_options(options));
    give_missing(results, outputs);
  });
}

TenonError* tenon_onnx_explain(TenonOnnx* onnx, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                               char** out_json) {
  return guard(__func__, [&] {
    required(out_json, "out_json");
    *out_json = new_text(get(onnx, "onnx").value.explain(types_of(named(names, inputs, input_count))).json());
  });
}

TenonError* tenon_onnx_graph(TenonOnnx* onnx, const char* const* names, const TenonTensor* const* inputs, uint64_t input_count,
                             TenonGraph** out_graph, TenonParameters** out_parameters) {
  return guard(__func__, [&] {
    required(out_graph, "out_graph");
    required(out_parameters, "out_parameters");
    onnx::Model& model = get(onnx, "onnx").value;
    auto graph = std::make_unique<TenonGraph>(model.to_graph(types_of(named(names, inputs, input_count))));
    *out_parameters = new TenonParameters(model.parameters());
    *out_graph = graph.release();
  });
}
