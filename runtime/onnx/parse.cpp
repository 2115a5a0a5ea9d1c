// SPDX-License-Identifier: Apache-2.0
// onnx/parse.cpp - reads the messages of onnx.proto.
//
// A field is recognised by its number and wire type together, as protozero's own checks of the wire type are assertions; fields that are
// not listed here are skipped.
#include <fmt/core.h>

#include <cstring>
#include <limits>
#include <type_traits>

#include <protozero/pbf_reader.hpp>

#include <tenon/error.h>

#include "core/log.h"
#include "io/lfs_pointer.h"
#include "io/limits.h"
#include "onnx/records.h"

namespace tenon::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::uint32_t varint(std::uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::varint);
}
constexpr std::uint32_t bytes(std::uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::length_delimited);
}
constexpr std::uint32_t fixed32(std::uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::fixed32);
}
constexpr std::uint32_t fixed64(std::uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::fixed64);
}

/// Reads one file; counts its messages.
class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  ModelRecord model(pbf_reader message) {
    ModelRecord model;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(1):
          model.ir_version = message.get_int64();
          break;
        case bytes(2):
          model.producer = text(message);
          break;
        case bytes(3):
          model.producer_version = text(message);
          break;
        case bytes(4):
          model.domain = text(message);
          break;
        case varint(5):
          model.model_version = message.get_int64();
          break;
        case bytes(6):
          model.doc = text(message);
          break;
        case bytes(7):
          model.graph = graph(message.get_message());
          has_graph_ = true;
          break;
        case bytes(8):
          model.opsets.push_back(opset(message.get_message()));
          break;
        case bytes(14):
          model.metadata.push_back(entry(message.get_message()));
          break;
        case bytes(25):
          model.functions.push_back(function(message.get_message()));
          break;
        default:
          message.skip();
      }
    }
    if (!has_graph_) throw Error(fmt::format("{}: expected an ONNX model, got a file without a graph", name_));
    return model;
  }

  TensorRecord tensor(pbf_reader message) {
    count();
    TensorRecord tensor;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(1):
          tensor.dims.push_back(message.get_int64());
          break;
        case bytes(1):
          append(message.get_packed_int64(), tensor.dims);
          break;
        case varint(2):
          tensor.type = static_cast<ElementType>(message.get_int32());
          break;
        case fixed32(4):
          tensor.floats.push_back(message.get_float());
          break;
        case bytes(4):
          append(message.get_packed_float(), tensor.floats);
          break;
        case varint(5):
          tensor.int32s.push_back(message.get_int32());
          break;
        case bytes(5):
          append(message.get_packed_int32(), tensor.int32s);
          break;
        case bytes(6):
          count(), tensor.texts.push_back(text(message));
          break;
        case varint(7):
          tensor.int64s.push_back(message.get_int64());
          break;
        case bytes(7):
          append(message.get_packed_int64(), tensor.int64s);
          break;
        case bytes(8):
          tensor.name = text(message);
          break;
        case bytes(9):
          tensor.raw = text(message);
          break;
        case fixed64(10):
          tensor.doubles.push_back(message.get_double());
          break;
        case bytes(10):
          append(message.get_packed_double(), tensor.doubles);
          break;
        case varint(11):
          tensor.uint64s.push_back(message.get_uint64());
          break;
        case bytes(11):
          append(message.get_packed_uint64(), tensor.uint64s);
          break;
        case bytes(13):
          tensor.location.push_back(entry(message.get_message()));
          break;
        case varint(14):
          tensor.external = message.get_int32() == 1;
          break;
        default:
          message.skip();
      }
    }
    return tensor;
  }

 private:
  static constexpr int max_depth = 64;  ///< of graphs in attributes of graphs

  const std::string& name_;
  std::uint64_t records_ = 0;
  int depth_ = 0;
  bool has_graph_ = false;

  void count() {
    static const std::uint64_t most = io::limit(io::Limit::onnx_records);
    if (++records_ > most) io::fail_limit(name_, io::Limit::onnx_records, "more");
  }
  static std::string_view text(pbf_reader& message) {
    const protozero::data_view view = message.get_view();
    return {view.data(), view.size()};
  }
  template <class Range, class T>
  static void append(const Range& range, std::vector<T>& out_list) {
    if constexpr (std::is_floating_point_v<T>) {
      out_list.reserve(out_list.size() + static_cast<std::size_t>(std::distance(range.begin(), range.end())));
    }
    for (auto at = range.begin(); at != range.end(); ++at) out_list.push_back(*at);
  }

  TextEntry entry(pbf_reader message) {
    count();
    TextEntry entry;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          entry.key = text(message);
          break;
        case bytes(2):
          entry.value = text(message);
          break;
        default:
          message.skip();
      }
    }
    return entry;
  }

  OpsetRecord opset(pbf_reader message) {
    count();
    OpsetRecord opset;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          opset.domain = text(message);
          break;
        case varint(2):
          opset.version = message.get_int64();
          break;
        default:
          message.skip();
      }
    }
    if (opset.domain == "ai.onnx") opset.domain = "";
    return opset;
  }

  SparseTensorRecord sparse_tensor(pbf_reader message) {
    SparseTensorRecord sparse;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          sparse.values = tensor(message.get_message());
          break;
        case bytes(2):
          sparse.indices = tensor(message.get_message());
          break;
        case varint(3):
          sparse.dims.push_back(message.get_int64());
          break;
        case bytes(3):
          append(message.get_packed_int64(), sparse.dims);
          break;
        default:
          message.skip();
      }
    }
    return sparse;
  }

  DimensionRecord dimension(pbf_reader message) {
    count();
    DimensionRecord dimension;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(1):
          dimension.size = message.get_int64();
          break;
        case bytes(2):
          dimension.symbol = text(message);
          break;
        default:
          message.skip();
      }
    }
    return dimension;
  }

  void shape(pbf_reader message, ValueRecord& out_value) {
    out_value.ranked = true;
    while (message.next()) {
      if (message.tag_and_type() == bytes(1)) {
        out_value.shape.push_back(dimension(message.get_message()));
      } else {
        message.skip();
      }
    }
  }

  /// TypeProto.Tensor and TypeProto.SparseTensor.
  void tensor_type(pbf_reader message, ValueRecord& out_value) {
    while (message.next()) {
      switch (message.tag_and_type()) {
        case varint(1):
          out_value.type = static_cast<ElementType>(message.get_int32());
          break;
        case bytes(2):
          shape(message.get_message(), out_value);
          break;
        default:
          message.skip();
      }
    }
  }

  /// TypeProto. Of a sequence or an optional, the type of its elements follows in `out_value`, to one level.
  void type(pbf_reader message, ValueRecord& out_value, ValueRecord::Kind& out_kind) {
    using Kind = ValueRecord::Kind;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          out_kind = Kind::tensor, tensor_type(message.get_message(), out_value);
          break;
        case bytes(8):
          out_kind = Kind::sparse_tensor, tensor_type(message.get_message(), out_value);
          break;
        case bytes(4):
          out_kind = Kind::sequence, element_type(message.get_message(), out_value);
          break;
        case bytes(9):
          out_kind = Kind::optional, element_type(message.get_message(), out_value);
          break;
        case bytes(5):
          out_kind = Kind::map, message.skip();
          break;
        default:
          message.skip();
      }
    }
  }
  void element_type(pbf_reader message, ValueRecord& out_value) {
    if (out_value.element_kind != ValueRecord::Kind::none) return;
    while (message.next()) {
      if (message.tag_and_type() == bytes(1)) {
        out_value.element_kind = ValueRecord::Kind::sparse_tensor;  // ends a deeper nesting
        ValueRecord::Kind kind = ValueRecord::Kind::none;
        type(message.get_message(), out_value, kind);
        out_value.element_kind = kind;
      } else {
        message.skip();
      }
    }
  }

  ValueRecord value(pbf_reader message) {
    count();
    ValueRecord value;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          value.name = text(message);
          break;
        case bytes(2):
          type(message.get_message(), value, value.kind);
          break;
        default:
          message.skip();
      }
    }
    return value;
  }

  AttributeRecord attribute(pbf_reader message) {
    count();
    AttributeRecord attribute;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          attribute.name = text(message);
          break;
        case fixed32(2):
          attribute.number = message.get_float();
          break;
        case varint(3):
          attribute.integer = message.get_int64();
          break;
        case bytes(4):
          attribute.text = text(message);
          break;
        case bytes(5):
          attribute.tensors.push_back(tensor(message.get_message()));
          break;
        case bytes(6):
          attribute.graphs.push_back(graph(message.get_message()));
          break;
        case fixed32(7):
          attribute.numbers.push_back(message.get_float());
          break;
        case bytes(7):
          append(message.get_packed_float(), attribute.numbers);
          break;
        case varint(8):
          attribute.integers.push_back(message.get_int64());
          break;
        case bytes(8):
          append(message.get_packed_int64(), attribute.integers);
          break;
        case bytes(9):
          count(), attribute.texts.push_back(text(message));
          break;
        case bytes(10):
          attribute.tensors.push_back(tensor(message.get_message()));
          break;
        case bytes(11):
          attribute.graphs.push_back(graph(message.get_message()));
          break;
        case varint(20):
          attribute.type = static_cast<AttributeRecord::Type>(message.get_int32());
          break;
        case bytes(21):
          attribute.reference = text(message);
          break;
        case bytes(22):
        case bytes(23):
          attribute.sparse.push_back(sparse_tensor(message.get_message()));
          break;
        default:
          message.skip();
      }
    }
    if (attribute.type == AttributeRecord::Type::undefined) attribute.type = type_of(attribute);
    return attribute;
  }
  /// The type of an attribute of IR version 1, which has no field for it.
  static AttributeRecord::Type type_of(const AttributeRecord& attribute) {
    using Type = AttributeRecord::Type;
    if (!attribute.integers.empty()) return Type::ints;
    if (!attribute.numbers.empty()) return Type::floats;
    if (!attribute.texts.empty()) return Type::strings;
    if (!attribute.tensors.empty()) return Type::tensor;
    if (!attribute.graphs.empty()) return Type::graph;
    if (!attribute.text.empty()) return Type::s;
    if (attribute.integer != 0) return Type::i;
    return attribute.number != 0 ? Type::f : Type::undefined;
  }

  NodeRecord node(pbf_reader message) {
    count();
    NodeRecord node;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          count(), node.inputs.push_back(text(message));
          break;
        case bytes(2):
          count(), node.outputs.push_back(text(message));
          break;
        case bytes(3):
          node.name = text(message);
          break;
        case bytes(4):
          node.op = text(message);
          break;
        case bytes(5):
          node.attributes.push_back(attribute(message.get_message()));
          break;
        case bytes(7):
          node.domain = text(message);
          break;
        case bytes(8):
          node.overload = text(message);
          break;
        default:
          message.skip();
      }
    }
    if (node.domain == "ai.onnx") node.domain = "";
    return node;
  }

  GraphRecord graph(pbf_reader message) {
    count();
    if (++depth_ > max_depth) throw Error(fmt::format("{}: expected graphs in graphs at most {} deep, got a deeper one", name_, max_depth));
    GraphRecord graph;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          graph.nodes.push_back(node(message.get_message()));
          break;
        case bytes(2):
          graph.name = text(message);
          break;
        case bytes(5):
          graph.initializers.push_back(tensor(message.get_message()));
          break;
        case bytes(11):
          graph.inputs.push_back(value(message.get_message()));
          break;
        case bytes(12):
          graph.outputs.push_back(value(message.get_message()));
          break;
        case bytes(15):
          graph.sparse_initializers.push_back(sparse_tensor(message.get_message()));
          break;
        default:
          message.skip();
      }
    }
    --depth_;
    return graph;
  }

  FunctionRecord function(pbf_reader message) {
    count();
    FunctionRecord function;
    while (message.next()) {
      switch (message.tag_and_type()) {
        case bytes(1):
          function.name = text(message);
          break;
        case bytes(4):
          count(), function.inputs.push_back(text(message));
          break;
        case bytes(5):
          count(), function.outputs.push_back(text(message));
          break;
        case bytes(6):
          count(), function.attributes.push_back(text(message));
          break;
        case bytes(7):
          function.nodes.push_back(node(message.get_message()));
          break;
        case bytes(9):
          function.opsets.push_back(opset(message.get_message()));
          break;
        case bytes(10):
          function.domain = text(message);
          break;
        case bytes(11):
          function.attributes_defaults.push_back(attribute(message.get_message()));
          break;
        case bytes(13):
          function.overload = text(message);
          break;
        default:
          message.skip();
      }
    }
    if (function.domain == "ai.onnx") function.domain = "";
    return function;
  }
};

/// Calls `parse` on the message; errors of protozero name the file, and what usually happened to it.
template <class Parse>
auto guarded(const std::string& name, std::string_view bytes, const char* what, const Parse& parse) {
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(fmt::format("{}: expected {} of at most 4 GiB, got {} bytes: weights of larger models are external data", name, what,
                            bytes.size()));
  }
  if (io::is_lfs_pointer(bytes)) throw Error(fmt::format("{}: expected {}, {}", name, what, io::got_lfs_pointer));
  try {
    return parse(pbf_reader(bytes.data(), bytes.size()));
  } catch (const protozero::end_of_buffer_exception&) {
    throw Error(
        fmt::format("{}: expected {}, got bytes that end too early: the file was copied in part, or is of another format; copy or "
                    "export it again",
                    name, what));
  } catch (const protozero::exception& problem) {
    log::debug("{}: {}", name, problem.what());
    throw Error(fmt::format("{}: expected {}, got bytes that are damaged or of another format; copy or export it again", name, what));
  }
}

}  // namespace

ModelRecord parse_model(const std::string& name, std::string_view bytes) {
  return guarded(name, bytes, "an ONNX model", [&](const pbf_reader& message) { return Parser(name).model(message); });
}

TensorRecord parse_tensor(const std::string& name, std::string_view bytes) {
  return guarded(name, bytes, "an ONNX tensor", [&](const pbf_reader& message) { return Parser(name).tensor(message); });
}

}  // namespace tenon::onnx
