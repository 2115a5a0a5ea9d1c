// SPDX-License-Identifier: Apache-2.0
// onnx_testing.h - ONNX models made by tests.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/onnx.h>

#include "onnx/model_file.h"
#include "onnx/records.h"
#include "temporary_folder.h"
#include "testing.h"

namespace tenon::test {

inline onnx::AttributeRecord integer(std::string_view name, std::int64_t value) {
  onnx::AttributeRecord attribute;
  attribute.name = name;
  attribute.type = onnx::AttributeRecord::Type::i;
  attribute.integer = value;
  return attribute;
}
inline onnx::AttributeRecord integers(std::string_view name, std::vector<std::int64_t> values) {
  onnx::AttributeRecord attribute;
  attribute.name = name;
  attribute.type = onnx::AttributeRecord::Type::ints;
  attribute.integers = std::move(values);
  return attribute;
}
inline onnx::AttributeRecord number(std::string_view name, float value) {
  onnx::AttributeRecord attribute;
  attribute.name = name;
  attribute.type = onnx::AttributeRecord::Type::f;
  attribute.number = value;
  return attribute;
}
inline onnx::AttributeRecord text(std::string_view name, std::string_view value) {
  onnx::AttributeRecord attribute;
  attribute.name = name;
  attribute.type = onnx::AttributeRecord::Type::s;
  attribute.text = value;
  return attribute;
}
inline onnx::AttributeRecord subgraph(std::string_view name, onnx::GraphRecord graph) {
  onnx::AttributeRecord attribute;
  attribute.name = name;
  attribute.type = onnx::AttributeRecord::Type::graph;
  attribute.graphs.push_back(std::move(graph));
  return attribute;
}
/// An attribute of a node in a function: the value of the calling node's attribute `from`.
inline onnx::AttributeRecord reference(std::string_view name, std::string_view from, onnx::AttributeRecord::Type type) {
  onnx::AttributeRecord attribute;
  attribute.name = name;
  attribute.reference = from;
  attribute.type = type;
  return attribute;
}

inline onnx::NodeRecord node(std::string_view op, std::vector<std::string_view> inputs, std::vector<std::string_view> outputs,
                             std::vector<onnx::AttributeRecord> attributes = {}) {
  onnx::NodeRecord record;
  record.op = op;
  record.inputs = std::move(inputs);
  record.outputs = std::move(outputs);
  record.attributes = std::move(attributes);
  return record;
}

/// A tensor with a type; a size of -1 is open.
inline onnx::ValueRecord value(std::string_view name, onnx::ElementType type, std::vector<std::int64_t> dims) {
  onnx::ValueRecord record;
  record.name = name;
  record.kind = onnx::ValueRecord::Kind::tensor;
  record.type = type;
  record.ranked = true;
  for (const std::int64_t size : dims) record.shape.push_back({.size = size, .symbol = size < 0 ? "n" : ""});
  return record;
}
inline onnx::ValueRecord f32(std::string_view name, std::vector<std::int64_t> dims) {
  return value(name, onnx::ElementType::f32, std::move(dims));
}
inline onnx::ValueRecord i64(std::string_view name, std::vector<std::int64_t> dims) {
  return value(name, onnx::ElementType::i64, std::move(dims));
}

inline onnx::TensorRecord floats(std::string_view name, std::vector<float> elements, std::vector<std::int64_t> dims) {
  onnx::TensorRecord tensor;
  tensor.name = name;
  tensor.type = onnx::ElementType::f32;
  tensor.dims = std::move(dims);
  tensor.floats = std::move(elements);
  return tensor;
}
inline onnx::TensorRecord indices(std::string_view name, std::vector<std::int64_t> elements) {
  onnx::TensorRecord tensor;
  tensor.name = name;
  tensor.type = onnx::ElementType::i64;
  tensor.dims = {static_cast<std::int64_t>(elements.size())};
  tensor.int64s = std::move(elements);
  return tensor;
}

inline onnx::GraphRecord onnx_graph(std::vector<onnx::NodeRecord> nodes, std::vector<onnx::ValueRecord> inputs,
                                    std::vector<onnx::ValueRecord> outputs, std::vector<onnx::TensorRecord> initializers = {}) {
  onnx::GraphRecord record;
  record.name = "test";
  record.nodes = std::move(nodes);
  record.inputs = std::move(inputs);
  record.outputs = std::move(outputs);
  record.initializers = std::move(initializers);
  return record;
}

inline onnx::ModelRecord model(onnx::GraphRecord graph, std::int64_t opset = 17) {
  onnx::ModelRecord record;
  record.ir_version = 8;
  record.producer = "tests";
  record.opsets = {{.domain = "", .version = opset}};
  record.graph = std::move(graph);
  return record;
}

/// Files of models in a folder of their own.
class OnnxFiles {
 public:
  std::string write(const onnx::ModelRecord& record, const std::string& name = "model.onnx") const {
    return folder.write(name, onnx::serialize(record));
  }
  onnx::Model load(const onnx::ModelRecord& record, const onnx::LoadOptions& options = {}) const {
    // A new name each time: Windows keeps the file of a loaded model from being written to.
    return onnx::Model::load(write(record, "loaded-" + std::to_string(loaded_++) + ".onnx"), context, options);
  }
  const TemporaryFolder folder;
  const Context context;

 private:
  mutable int loaded_ = 0;
};

/// The error of an import, without the path before it.
inline std::string message_of_import(const onnx::ModelRecord& record, const onnx::NamedTensors& inputs = {}) {
  const OnnxFiles files;
  const std::string path = files.write(record);
  std::string text = message_of([&] { onnx::Model::load(path, files.context).run(inputs); });
  for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path)) text.replace(at, path.size(), "FILE");
  return text;
}

}  // namespace tenon::test
