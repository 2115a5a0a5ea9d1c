// SPDX-License-Identifier: Apache-2.0
// onnx/records.h - an ONNX file as plain structs, one for each message of onnx.proto that the importer reads. Texts and raw data are views
// of the file's bytes, which the reader of the records keeps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx {

/// TensorProto.DataType.
enum class ElementType : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};

/// A key with a value: metadata, and the place of external data.
struct TextEntry {
  std::string_view key, value;
};

/// TensorProto. Exactly one of the lists below `dims` holds the elements; `raw` as little-endian bytes.
struct TensorRecord {
  std::string_view name;
  ElementType type = ElementType::undefined;
  std::vector<std::int64_t> dims;
  std::string_view raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int32_t> int32s;  ///< also 8- and 16-bit integers, bool, bits of f16, bf16, f8 and pairs of i4
  std::vector<std::int64_t> int64s;
  std::vector<std::uint64_t> uint64s;  ///< also u32
  std::vector<std::string_view> texts;
  bool external = false;            ///< the elements are in another file
  std::vector<TextEntry> location;  ///< of external data: location, offset, length
};

/// SparseTensorProto: elements at `indices`, zeros elsewhere.
struct SparseTensorRecord {
  TensorRecord values, indices;
  std::vector<std::int64_t> dims;
};

/// TensorShapeProto.Dimension: a size, a symbol, or neither.
struct DimensionRecord {
  std::int64_t size = -1;  ///< -1: not given
  std::string_view symbol;
};

/// ValueInfoProto with its type.
struct ValueRecord {
  enum class Kind : std::uint8_t { none, tensor, sparse_tensor, sequence, map, optional };
  std::string_view name;
  Kind kind = Kind::none;
  Kind element_kind = Kind::none;  ///< of a sequence or an optional
  ElementType type = ElementType::undefined;
  bool ranked = false;  ///< the shape is given
  std::vector<DimensionRecord> shape;
};

struct GraphRecord;

/// AttributeProto.
struct AttributeRecord {
  /// AttributeProto.AttributeType.
  enum class Type : std::int32_t {
    undefined = 0,
    f = 1,
    i = 2,
    s = 3,
    tensor = 4,
    graph = 5,
    floats = 6,
    ints = 7,
    strings = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type_proto = 13,
    type_protos = 14
  };
  std::string_view name;
  std::string_view reference;  ///< inside a function: the attribute of the calling node that gives the value
  Type type = Type::undefined;
  float number = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<float> numbers;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::vector<TensorRecord> tensors;       ///< one for type tensor
  std::vector<SparseTensorRecord> sparse;  ///< one for type sparse_tensor
  std::vector<GraphRecord> graphs;         ///< one for type graph
};

/// NodeProto.
struct NodeRecord {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;  ///< an empty name: absent
  std::vector<AttributeRecord> attributes;
};

/// GraphProto.
struct GraphRecord {
  std::string_view name;
  std::vector<NodeRecord> nodes;
  std::vector<TensorRecord> initializers;
  std::vector<SparseTensorRecord> sparse_initializers;  ///< named by their values
  std::vector<ValueRecord> inputs, outputs;
};

/// OperatorSetIdProto.
struct OpsetRecord {
  std::string_view domain;  ///< "" for ai.onnx
  std::int64_t version = 0;
};

/// FunctionProto.
struct FunctionRecord {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attributes;  ///< without a default
  std::vector<AttributeRecord> attributes_defaults;
  std::vector<NodeRecord> nodes;
  std::vector<OpsetRecord> opsets;
};

/// ModelProto.
struct ModelRecord {
  std::int64_t ir_version = 0;
  std::string_view producer, producer_version, domain, doc;
  std::int64_t model_version = 0;
  std::vector<OpsetRecord> opsets;
  std::vector<TextEntry> metadata;
  GraphRecord graph;
  std::vector<FunctionRecord> functions;
};

/// The structs of a serialized ModelProto; they view `bytes`. `name` stands in messages for the file.
/// Errors  INVALID_ARGUMENT: not a ModelProto, graphs nested deeper than 64, more records than the limit onnx_records.
/// Source  onnx/onnx.proto of ONNX 1.23, read with protozero.
ModelRecord parse_model(const std::string& name, std::string_view bytes);
/// The same for a serialized TensorProto, as in the test data of ONNX.
TensorRecord parse_tensor(const std::string& name, std::string_view bytes);

/// The bytes of a ModelProto with these records.
/// Source  as parse_model.
std::string serialize(const ModelRecord& model);
/// The bytes of a TensorProto.
std::string serialize(const TensorRecord& tensor);

}  // namespace tenon::onnx
