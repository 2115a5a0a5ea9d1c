// SPDX-License-Identifier: Apache-2.0
// onnx/serialize.cpp - writes the messages of onnx.proto that parse.cpp reads.
#include <protozero/pbf_writer.hpp>

#include "onnx/records.h"

namespace tenon::onnx {
namespace {

using protozero::pbf_writer;

/// Adds a message of field `field` to `parent`, which `write` fills.
template <class Write>
void message(pbf_writer& parent, std::uint32_t field, const Write& write) {
  pbf_writer child(parent, field);
  write(child);
}

void text(pbf_writer& out, std::uint32_t field, std::string_view value) {
  if (!value.empty()) out.add_bytes(field, value.data(), value.size());
}

template <class T>
void texts(pbf_writer& out, std::uint32_t field, const T& values) {
  for (const std::string_view value : values) out.add_bytes(field, value.data(), value.size());
}

void write(pbf_writer& out, const TextEntry& entry) {
  text(out, 1, entry.key);
  text(out, 2, entry.value);
}

void write(pbf_writer& out, const OpsetRecord& opset) {
  out.add_bytes(1, opset.domain.data(), opset.domain.size());
  out.add_int64(2, opset.version);
}

void write(pbf_writer& out, const TensorRecord& tensor) {
  out.add_packed_int64(1, tensor.dims.begin(), tensor.dims.end());
  out.add_int32(2, static_cast<std::int32_t>(tensor.type));
  if (!tensor.floats.empty()) out.add_packed_float(4, tensor.floats.begin(), tensor.floats.end());
  if (!tensor.int32s.empty()) out.add_packed_int32(5, tensor.int32s.begin(), tensor.int32s.end());
  texts(out, 6, tensor.texts);
  if (!tensor.int64s.empty()) out.add_packed_int64(7, tensor.int64s.begin(), tensor.int64s.end());
  text(out, 8, tensor.name);
  text(out, 9, tensor.raw);
  if (!tensor.doubles.empty()) out.add_packed_double(10, tensor.doubles.begin(), tensor.doubles.end());
  if (!tensor.uint64s.empty()) out.add_packed_uint64(11, tensor.uint64s.begin(), tensor.uint64s.end());
  for (const TextEntry& entry : tensor.location) message(out, 13, [&](pbf_writer& child) { write(child, entry); });
  if (tensor.external) out.add_enum(14, 1);
}

void write(pbf_writer& out, const SparseTensorRecord& sparse) {
  message(out, 1, [&](pbf_writer& child) { write(child, sparse.values); });
  message(out, 2, [&](pbf_writer& child) { write(child, sparse.indices); });
  out.add_packed_int64(3, sparse.dims.begin(), sparse.dims.end());
}

/// TypeProto.Tensor.
void write_tensor_type(pbf_writer& out, const ValueRecord& value) {
  out.add_int32(1, static_cast<std::int32_t>(value.type));
  if (!value.ranked) return;
  // protozero drops messages without fields; here they mean a scalar, and a dimension of any size.
  if (value.shape.empty()) return out.add_bytes(2, "", 0);
  message(out, 2, [&](pbf_writer& shape) {
    for (const DimensionRecord& dimension : value.shape) {
      if (dimension.size < 0 && dimension.symbol.empty()) {
        shape.add_bytes(1, "", 0);
        continue;
      }
      message(shape, 1, [&](pbf_writer& child) {
        if (dimension.size >= 0) child.add_int64(1, dimension.size);
        text(child, 2, dimension.symbol);
      });
    }
  });
}

/// TypeProto of a tensor, or of a sequence or an optional of tensors.
void write_type(pbf_writer& out, const ValueRecord& value) {
  const auto tensor = [&](pbf_writer& type) { message(type, 1, [&](pbf_writer& child) { write_tensor_type(child, value); }); };
  const auto container = [&](std::uint32_t field) { message(out, field, [&](pbf_writer& child) { message(child, 1, tensor); }); };
  if (value.kind == ValueRecord::Kind::tensor) tensor(out);
  if (value.kind == ValueRecord::Kind::sequence) container(4);
  if (value.kind == ValueRecord::Kind::optional) container(9);
}

void write(pbf_writer& out, const ValueRecord& value) {
  text(out, 1, value.name);
  message(out, 2, [&](pbf_writer& child) { write_type(child, value); });
}

void write(pbf_writer& out, const GraphRecord& graph);

void write(pbf_writer& out, const AttributeRecord& attribute) {
  using Type = AttributeRecord::Type;
  text(out, 1, attribute.name);
  text(out, 21, attribute.reference);
  out.add_enum(20, static_cast<std::int32_t>(attribute.type));
  if (!attribute.reference.empty()) return;
  switch (attribute.type) {
    case Type::f:
      out.add_float(2, attribute.number);
      break;
    case Type::i:
      out.add_int64(3, attribute.integer);
      break;
    case Type::s:
      out.add_bytes(4, attribute.text.data(), attribute.text.size());
      break;
    case Type::floats:
      out.add_packed_float(7, attribute.numbers.begin(), attribute.numbers.end());
      break;
    case Type::ints:
      out.add_packed_int64(8, attribute.integers.begin(), attribute.integers.end());
      break;
    case Type::strings:
      texts(out, 9, attribute.texts);
      break;
    default:
      break;
  }
  for (const TensorRecord& tensor : attribute.tensors) {
    message(out, attribute.type == Type::tensors ? 10 : 5, [&](pbf_writer& child) { write(child, tensor); });
  }
  for (const GraphRecord& graph : attribute.graphs) {
    message(out, attribute.type == Type::graphs ? 11 : 6, [&](pbf_writer& child) { write(child, graph); });
  }
  for (const SparseTensorRecord& sparse : attribute.sparse) {
    message(out, attribute.type == Type::sparse_tensors ? 23 : 22, [&](pbf_writer& child) { write(child, sparse); });
  }
}

void write(pbf_writer& out, const NodeRecord& node) {
  texts(out, 1, node.inputs);
  texts(out, 2, node.outputs);
  text(out, 3, node.name);
  text(out, 4, node.op);
  for (const AttributeRecord& attribute : node.attributes) message(out, 5, [&](pbf_writer& child) { write(child, attribute); });
  text(out, 7, node.domain);
  text(out, 8, node.overload);
}

void write(pbf_writer& out, const GraphRecord& graph) {
  for (const NodeRecord& node : graph.nodes) message(out, 1, [&](pbf_writer& child) { write(child, node); });
  text(out, 2, graph.name);
  for (const TensorRecord& tensor : graph.initializers) message(out, 5, [&](pbf_writer& child) { write(child, tensor); });
  for (const ValueRecord& value : graph.inputs) message(out, 11, [&](pbf_writer& child) { write(child, value); });
  for (const ValueRecord& value : graph.outputs) message(out, 12, [&](pbf_writer& child) { write(child, value); });
  for (const SparseTensorRecord& sparse : graph.sparse_initializers) message(out, 15, [&](pbf_writer& child) { write(child, sparse); });
}

void write(pbf_writer& out, const FunctionRecord& function) {
  text(out, 1, function.name);
  texts(out, 4, function.inputs);
  texts(out, 5, function.outputs);
  texts(out, 6, function.attributes);
  for (const NodeRecord& node : function.nodes) message(out, 7, [&](pbf_writer& child) { write(child, node); });
  for (const OpsetRecord& opset : function.opsets) message(out, 9, [&](pbf_writer& child) { write(child, opset); });
  text(out, 10, function.domain);
  for (const AttributeRecord& attribute : function.attributes_defaults) {
    message(out, 11, [&](pbf_writer& child) { write(child, attribute); });
  }
  text(out, 13, function.overload);
}

}  // namespace

std::string serialize(const ModelRecord& model) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_int64(1, model.ir_version);
  text(out, 2, model.producer);
  text(out, 3, model.producer_version);
  text(out, 4, model.domain);
  if (model.model_version != 0) out.add_int64(5, model.model_version);
  text(out, 6, model.doc);
  message(out, 7, [&](pbf_writer& child) { write(child, model.graph); });
  for (const OpsetRecord& opset : model.opsets) message(out, 8, [&](pbf_writer& child) { write(child, opset); });
  for (const TextEntry& entry : model.metadata) message(out, 14, [&](pbf_writer& child) { write(child, entry); });
  for (const FunctionRecord& function : model.functions) message(out, 25, [&](pbf_writer& child) { write(child, function); });
  return bytes;
}

std::string serialize(const TensorRecord& tensor) {
  std::string bytes;
  pbf_writer out(bytes);
  write(out, tensor);
  return bytes;
}

}  // namespace tenon::onnx
