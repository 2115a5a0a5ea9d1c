// SPDX-License-Identifier: Apache-2.0
// tenon/graph.h - computation graphs: typed values, ops applied to them, parameters and their
// updates.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/backend.h>
#include <tenon/dtype.h>
#include <tenon/shape.h>
#include <tenon/tensor.h>

namespace tenon {

/// Index of a value in its graph.
using ValueId = std::uint32_t;
/// Index of a node in its graph.
using NodeId = std::uint32_t;
inline constexpr std::uint32_t no_id = 0xffffffffu;

/// An op's attributes: the ABI's struct, held by value. Compared and hashed as bytes.
class Attributes {
 public:
  static constexpr std::size_t capacity = 144;
  Attributes() : Attributes(of(tenon_attributes_none{})) {}
  /// Stores `value` with its struct_size set.
  template <class Struct>
  static Attributes of(Struct value) {
    static_assert(sizeof(Struct) <= capacity);
    Attributes a{Empty{}};
    value.struct_size = sizeof(Struct);
    std::memcpy(a.bytes_.data(), &value, sizeof(Struct));
    return a;
  }
  /// Stores the attributes of a vendor's op with a copy of what they point to, which lives as long as
  /// the process and is the same for equal attributes.
  TENON_API static Attributes of(const tenon_attributes_vendor& attributes);
  /// The attributes as the struct that the op's line in ops.def names.
  template <class Struct>
  const Struct& as() const {
    return *reinterpret_cast<const Struct*>(bytes_.data());
  }
  /// Pointer to the struct, as passed through the plugin ABI.
  const void* data() const { return bytes_.data(); }
  bool operator==(const Attributes&) const = default;

 private:
  struct Empty {};
  explicit Attributes(Empty) {}
  alignas(8) std::array<unsigned char, capacity> bytes_{};
};

class Graph;
namespace graph {
class GraphEditor;
}

/// A handle on one value of a graph; valid while the graph lives and is not moved.
/// Default-constructed: an absent optional operand.
class TENON_API Value {
 public:
  Value() = default;
  /// For the graph's own use.
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  /// False for an absent operand.
  bool present() const { return graph_ != nullptr; }
  /// Its index in the graph.
  ValueId id() const { return id_; }
  /// Errors: an absent value.
  Graph& graph() const;
  /// Returned by value, since the graph's storage may move when it grows.
  DType dtype() const;
  /// Returned by value, for the same reason.
  Shape shape() const;
  /// Returned by value, for the same reason.
  std::string name() const;

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = no_id;
};

/// The origin of a value.
enum class ValueKind : std::uint8_t {
  input,      ///< bound by the caller at each run
  parameter,  ///< kept between runs, by name
  constant,   ///< known when the graph is built
  computed,   ///< computed by a node
};

/// One value.
struct ValueInfo {
  ValueKind kind = ValueKind::computed;
  DType dtype = DType::none;
  Shape shape;
  std::string name;
  NodeId producer = no_id;   ///< computed values
  std::uint32_t output = 0;  ///< index among the producer's outputs
  Tensor constant;           ///< constants: dense, on the host
  /// inputs: those of the tensors that are bound, in elements; empty: dense
  std::vector<std::int64_t> strides = {};
};

/// One op applied to values.
struct NodeInfo {
  tenon_op op = TENON_OP_NONE;
  std::uint32_t version = 0;
  Attributes attributes;
  std::vector<ValueId> inputs;   ///< no_id: an absent optional operand
  std::vector<ValueId> outputs;  ///< no_id: an unused optional result, after dead code elimination
  std::string name;              ///< unique in the graph
  /// requested device as written by the user; empty: the program's default
  std::string device;
  std::uint64_t id = 0;  ///< unique and unchanged by passes; the correlation id of profiles
};

/// Options of a node in addition to operands and attributes.
struct NodeOptions {
  std::string name;  ///< empty: the op's stem. A duplicate name gets a suffix: softmax_1
  /// Result shape of ops whose operands do not determine it: Reshape, Expand, Slice, Pad, OneHot,
  /// the Random ops.
  std::optional<Shape> shape;
  std::vector<std::int64_t> sizes = {};  ///< Split: size of each result along the axis
};

/// A named result of a run.
struct GraphOutput {
  std::string name;
  ValueId value;
};
/// A parameter and its new value after a run.
struct GraphUpdate {
  ValueId parameter, value;
};

/// A computation in SSA form, built front to back: a node only reads values that exist. Shape and
/// dtype of every value are known as soon as it is created; invalid operands throw an Error that
/// names op, node, what was expected and what was given, and leave the graph unchanged.
/// Names    inputs and parameters share one namespace, outputs have another. Callers bind by these
///          names, so a duplicate is an error.
/// Threads  one thread at a time.
class TENON_API Graph {
 public:
  /// A value bound at each run, in the order of these calls. With strides (in elements) the tensors
  /// that are bound are views with these strides, which a program reads in place if the device can.
  Value input(const std::string& name, DType dtype, const Shape& shape,
              std::span<const std::int64_t> strides = {});
  /// A value kept between runs, in a ParameterStore.
  Value parameter(const std::string& name, DType dtype, const Shape& shape);
  /// A constant with a copy of the tensor's elements.
  Value constant(const Tensor& tensor, const std::string& name = {});

  /// Applies an op of tenon/ops.def at its newest version, or a vendor's op (tenon/vendor_ops.h).
  /// Returns all its outputs.
  std::vector<Value> apply(tenon_op op, const std::vector<Value>& inputs,
                           const Attributes& attributes = {}, const NodeOptions& options = {});

  /// Declares a result of each run, in the order of these calls.
  void output(const std::string& name, Value value);
  /// Sets the parameter to `value` (same dtype and shape) after each run. At most one update per
  /// parameter.
  void update(Value parameter, Value value);

  /// Sets the device that nodes created from now on request; returns the previous one. See
  /// DeviceScope.
  std::string set_device(std::string device) { return std::exchange(device_, std::move(device)); }
  /// The device that new nodes request; empty: the program's default.
  const std::string& device() const { return device_; }
  /// Prefixes the names of nodes created from now on with "<scope>/"; returns the previous scope.
  /// See NameScope.
  std::string set_scope(std::string scope) { return std::exchange(scope_, std::move(scope)); }
  /// The current scope.
  const std::string& scope() const { return scope_; }

  /// Values by ValueId.
  const std::vector<ValueInfo>& values() const { return values_; }
  /// Nodes by NodeId, in topological order.
  const std::vector<NodeInfo>& nodes() const { return nodes_; }
  /// In order of declaration.
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  /// In order of declaration.
  const std::vector<GraphUpdate>& updates() const { return updates_; }
  const ValueInfo& info(ValueId id) const { return values_[id]; }  ///< valid until the graph grows
  /// Human-readable text, one line per input, parameter, node, output and update:
  /// "softmax_1:f32(8,10) = Softmax(x) axis=1  @cpu:0".
  std::string str() const;

 private:
  friend class graph::GraphEditor;
  Value add_value(ValueInfo info);
  Value add_bound(ValueKind kind, const std::string& name, DType dtype, const Shape& shape);
  std::string free_name(const std::string& requested) const;
  void claim(const std::string& name);
  void check_own(Value value, const char* what) const;

  std::vector<ValueInfo> values_;
  std::vector<NodeInfo> nodes_;
  std::vector<GraphOutput> outputs_;
  std::vector<GraphUpdate> updates_;
  /// used names, with the next suffix to try
  std::unordered_map<std::string, std::uint32_t> names_;
  std::string device_, scope_;
  std::uint64_t next_id_ = 1;
};

/// Nodes created while it lives request `device`; scopes nest, the innermost wins.
class DeviceScope {
 public:
  /// Begins the scope; the name is resolved when a program is created.
  DeviceScope(Graph& graph, std::string device)
      : graph_(graph), before_(graph.set_device(std::move(device))) {}
  ~DeviceScope() { graph_.set_device(std::move(before_)); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Graph& graph_;
  std::string before_;
};

/// Nodes created while it lives are named "<name>/..."; scopes nest: "block_1/dense/matmul".
class NameScope {
 public:
  /// Begins the scope.
  NameScope(Graph& graph, const std::string& name)
      : graph_(graph),
        before_(graph.set_scope(graph.scope().empty() ? name : graph.scope() + "/" + name)) {}
  ~NameScope() { graph_.set_scope(std::move(before_)); }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  Graph& graph_;
  std::string before_;
};

/// Reverse-mode gradients of a scalar: appends nodes to the graph and returns d loss / d value for
/// each value, zeros where there is no path. Numerically unstable expressions are first replaced by
/// stable ones with equal values (log(softmax(x)) becomes log_softmax(x)). The nodes of a gradient
/// request the device of the node they belong to and are named "gradient/<its name>/...". Values of
/// a dtype that is not floating pass no gradient on. Errors: a loss that is not a floating scalar;
/// a path through an op without a gradient, by name. Of the <Op>Grad ops only those of Conv have
/// one, and no <Name>Step has, so second derivatives are rarely available. No gradient passes
/// through `constants`: a loss that depends on a value by way of them alone does not depend on it.
TENON_API std::vector<Value> gradients(Value loss, const std::vector<Value>& with_respect_to,
                                       const std::vector<Value>& constants = {});

/// Device of each node by the node's name; a node that is not listed shows the device it requests.
using DeviceByNode = std::unordered_map<std::string, std::string>;
/// The graph for Graphviz: nodes with op, attributes, name, device and result bytes, edges with
/// dtype and shape.
TENON_API std::string to_dot(const Graph& graph, const DeviceByNode& devices = {});
/// {"values": [{id, name, kind, dtype, shape, bytes}], "nodes": [{id, name, op, version,
/// attributes, inputs, outputs, device, output_bytes}], "outputs": [{name, value}], "updates":
/// [{parameter, value}]}.
TENON_API std::string to_json(const Graph& graph, const DeviceByNode& devices = {});

/// The name of an op: "MatMul"; "op 1234" for an unknown one.
TENON_API const char* op_name(tenon_op op);

}  // namespace tenon
