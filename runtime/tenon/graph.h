// tenon/graph.h - computations as data: typed values, ops applied to them, parameters and their updates.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/backend.h>
#include <tenon/dtype.h>
#include <tenon/shape.h>
#include <tenon/tensor.h>

namespace tenon {

/// A value's number in its graph.
using ValueId = std::uint32_t;
/// A node's number in its graph.
using NodeId = std::uint32_t;
inline constexpr std::uint32_t no_id = 0xffffffffu;

/// An op's attributes: the ABI's own struct, held by value. Compared and hashed as bytes.
class Attributes {
 public:
  static constexpr std::size_t capacity = 144;
  Attributes() : Attributes(of(tenon_attributes_none{})) {}
  /// Sets struct_size.
  template <class Struct>
  static Attributes of(Struct value) {
    static_assert(sizeof(Struct) <= capacity);
    Attributes a{Empty{}};
    value.struct_size = sizeof(Struct);
    std::memcpy(a.bytes_.data(), &value, sizeof(Struct));
    return a;
  }
  /// Read as the struct that the op's line in ops.def names.
  template <class Struct>
  const Struct& as() const {
    return *reinterpret_cast<const Struct*>(bytes_.data());
  }
  /// As the socket takes them.
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

/// A handle on one value of a graph, good while that graph lives where it is. Default-constructed: an absent optional operand.
class Value {
 public:
  Value() = default;
  /// For the graph's own use.
  Value(Graph* graph, ValueId id) : graph_(graph), id_(id) {}
  /// False for an absent operand.
  bool present() const { return graph_ != nullptr; }
  /// Its number in the graph.
  ValueId id() const { return id_; }
  /// Errors: an absent value.
  Graph& graph() const;
  /// By value: what the graph holds may move when it grows.
  DType dtype() const;
  /// By value, likewise.
  Shape shape() const;
  /// By value, likewise.
  std::string name() const;

 private:
  Graph* graph_ = nullptr;
  ValueId id_ = no_id;
};

/// Where a value comes from.
enum class ValueKind : std::uint8_t {
  input,      ///< bound at each run
  parameter,  ///< kept between runs, by name
  constant,   ///< bytes known now
  computed,   ///< made by a node
};

/// One value.
struct ValueInfo {
  ValueKind kind = ValueKind::computed;
  DType dtype = DType::none;
  Shape shape;
  std::string name;
  NodeId producer = no_id;   ///< computed values
  std::uint32_t output = 0;  ///< which output of the producer
  Tensor constant;           ///< constants: dense, on the host
};

/// One op applied to values.
struct NodeInfo {
  tenon_op op = TENON_OP_NONE;
  std::uint32_t version = 0;
  Attributes attributes;
  std::vector<ValueId> inputs;   ///< no_id: an absent optional operand
  std::vector<ValueId> outputs;  ///< no_id: an optional result that nobody reads, after dead code is gone
  std::string name;              ///< unique in the graph
  std::string device;            ///< asked for, as typed; empty: the program's default
  std::uint64_t id = 0;          ///< unique, never changes under passes: the correlation id of profiles
};

/// What the caller adds to an op beyond operands and attributes.
struct NodeOptions {
  std::string name;  ///< empty: the op's stem. A name that is taken gets a number: softmax_1
  /// Ops whose result shape no operand tells: Reshape, Expand, Slice, Pad, OneHot, the Random ops.
  std::optional<Shape> shape;
  std::vector<std::int64_t> sizes = {};  ///< Split: of each result along the axis
};

/// Named results of a run, and new values for parameters.
struct GraphOutput {
  std::string name;
  ValueId value;
};
/// A parameter and what it holds after a run.
struct GraphUpdate {
  ValueId parameter, value;
};

/// A computation in SSA form, built front to back: a node only reads values that exist. Shape and dtype of every value are known as soon as
/// it is made; operands that do not fit throw Error naming op, node, wanted and got, and leave the graph as it was.
/// Names    inputs and parameters share one set of names, outputs have another; both are what callers bind by, so a name twice is an error.
/// Threads  one thread at a time.
class Graph {
 public:
  /// A value bound at each run, in the order of these calls.
  Value input(const std::string& name, DType dtype, const Shape& shape);
  /// A value kept between runs, in a ParameterStore.
  Value parameter(const std::string& name, DType dtype, const Shape& shape);
  /// Keeps a copy of the tensor's elements.
  Value constant(const Tensor& tensor, const std::string& name = {});

  /// Applies an op of tenon/ops.def at its newest version. Returns all its outputs.
  std::vector<Value> apply(tenon_op op, const std::vector<Value>& inputs, const Attributes& attributes = {},
                           const NodeOptions& options = {});

  /// A result of each run, in the order of these calls.
  void output(const std::string& name, Value value);
  /// After a run the parameter holds `value` (same dtype and shape). Once per parameter.
  void update(Value parameter, Value value);

  /// Nodes made from now on ask for this device; returns what was asked for before. See DeviceScope.
  std::string set_device(std::string device) { return std::exchange(device_, std::move(device)); }
  /// What nodes made now ask for; empty: the program's default.
  const std::string& device() const { return device_; }
  /// Names of nodes made from now on start with "<scope>/"; returns what was set before. See NameScope.
  std::string set_scope(std::string scope) { return std::exchange(scope_, std::move(scope)); }
  /// The scope in force.
  const std::string& scope() const { return scope_; }

  /// By ValueId.
  const std::vector<ValueInfo>& values() const { return values_; }
  /// By NodeId, in an order in which they may run.
  const std::vector<NodeInfo>& nodes() const { return nodes_; }
  /// In the order in which they were declared.
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  /// In the order in which they were declared.
  const std::vector<GraphUpdate>& updates() const { return updates_; }
  const ValueInfo& info(ValueId id) const { return values_[id]; }  ///< good until the graph grows
  /// One line per input, parameter, node, output and update: "softmax_1:f32(8,10) = Softmax(x) axis=1  @cpu:0". For people.
  std::string str() const;

 private:
  friend class graph::GraphEditor;
  Value add_value(ValueInfo info);
  Value add_bound(ValueKind kind, const std::string& name, DType dtype, const Shape& shape);
  std::string free_name(const std::string& wanted) const;
  void claim(const std::string& name);
  void check_own(Value value, const char* what) const;

  std::vector<ValueInfo> values_;
  std::vector<NodeInfo> nodes_;
  std::vector<GraphOutput> outputs_;
  std::vector<GraphUpdate> updates_;
  std::unordered_map<std::string, std::uint32_t> names_;  ///< taken, with the number to try next
  std::string device_, scope_;
  std::uint64_t next_id_ = 1;
};

/// Nodes made while it lives ask for `device`; scopes nest, the inner one wins.
class DeviceScope {
 public:
  /// Begins; the name is looked up when a program is made.
  DeviceScope(Graph& graph, std::string device) : graph_(graph), before_(graph.set_device(std::move(device))) {}
  ~DeviceScope() { graph_.set_device(std::move(before_)); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Graph& graph_;
  std::string before_;
};

/// Nodes made while it lives are named "<name>/..."; scopes nest: "block_1/dense/matmul".
class NameScope {
 public:
  /// Begins.
  NameScope(Graph& graph, const std::string& name)
      : graph_(graph), before_(graph.set_scope(graph.scope().empty() ? name : graph.scope() + "/" + name)) {}
  ~NameScope() { graph_.set_scope(std::move(before_)); }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  Graph& graph_;
  std::string before_;
};

/// Reverse-mode gradients of a scalar with respect to values: appends nodes to the graph and returns d loss / d value for each, zeros
/// where there is no path. Expressions that lose digits are put into their stable form first (log(softmax(x)) becomes log_softmax(x));
/// values stay what they are. A gradient's nodes ask for the device of the node they belong to and are named "gradient/<its name>/...".
/// Values of other than floating dtype pass no gradient on. Errors: a loss that is not a floating scalar; a path through an op without a
/// gradient, by name: of the <Op>Grad only those of Conv have one, no <Name>Step has, so second derivatives are rare.
std::vector<Value> gradients(Value loss, const std::vector<Value>& with_respect_to);

/// Where nodes run, by their names; those that are not listed show the device they ask for.
using DeviceByNode = std::unordered_map<std::string, std::string>;
/// The graph for Graphviz: nodes with op, attributes, name, device and bytes of their results, edges with dtype and shape.
std::string to_dot(const Graph& graph, const DeviceByNode& devices = {});
/// {"values": [{id, name, kind, dtype, shape, bytes}], "nodes": [{id, name, op, version, attributes, inputs, outputs, device,
/// output_bytes}], "outputs": [{name, value}], "updates": [{parameter, value}]}.
std::string to_json(const Graph& graph, const DeviceByNode& devices = {});

/// "MatMul", or "op 1234".
const char* op_name(tenon_op op);

}  // namespace tenon
