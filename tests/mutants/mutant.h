// mutant.h - a backend that is honest but for one thing, which the build names.
//
// The honest part is a copy of the reference backend. Each slot that a mutation of mutants.def spoils is wrapped here, by subject:
// backend.cpp (query, lifecycle), memory.cpp, streams.cpp, graphs.cpp and results.cpp (plans), blas.cpp, process.cpp (what is done to the
// process).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <tenon/backend.h>

namespace tenon::mutants {

#define HONEST(name, ...) name,
#define MUTANT(name, ...) name,
enum class Mutation {
#include "mutants.def"
};
#undef HONEST
#undef MUTANT

/// Which one this plugin is. Defined by a generated source, the only one that differs between plugins.
extern const Mutation mutation;
extern const char* const mutation_name;
inline bool is(Mutation m) {
  return mutation == m;
}

/// The table of the honest backend; NULL before the first `create`.
const tenon_backend_table& real();
/// The services that the backend of this device was created with.
const tenon_host* host_of(tenon_device* device);

/// Writes a text and returns the status.
tenon_status say(tenon_error* error, tenon_status status, const char* text);

/// Slots of one subject, put over the honest ones in `table`.
void spoil_memory(tenon_backend_table& table);
void spoil_streams(tenon_backend_table& table);
void spoil_plans(tenon_backend_table& table);
void spoil_blas(tenon_backend_table& table);

/// The honest stream behind one of ours, when all that it was given is done.
tenon_stream* drained(tenon_stream* stream);
/// Work is done later, on a thread of each stream.
bool is_asynchronous();

/// What is done to the process at these points.
enum class Moment { query, create, execute, shutdown };
void misbehave(Moment moment);

inline unsigned char* bytes_at(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
}

// ---------------------------------------------------------------- plans

std::uint64_t size_of(tenon_dtype dtype);

/// A graph's deep copy, which may be changed.
class Graph {
 public:
  struct Value {
    std::vector<std::int64_t> shape;
    std::optional<std::vector<std::int64_t>> strides;
    tenon_value wire;

    bool is_dense() const { return !strides.has_value(); }
    std::uint64_t count() const;
    std::uint64_t size_bytes() const { return count() * size_of(wire.desc.dtype); }
  };
  struct Node {
    std::vector<std::uint64_t> attributes;
    std::vector<std::uint32_t> inputs, outputs;
    std::string name;
    tenon_node wire;

    template <class Struct>
    Struct& as() {
      return *reinterpret_cast<Struct*>(attributes.data());
    }
    template <class Struct>
    const Struct& as() const {
      return *reinterpret_cast<const Struct*>(attributes.data());
    }
  };

  Graph() = default;
  explicit Graph(const tenon_graph& graph);
  /// Whether a copy can be made at all. What is refused anyway is left to the honest backend.
  static bool can_copy(const tenon_graph& graph);
  /// Points into this object.
  const tenon_graph& wire();

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::uint32_t binding_count = 0;

 private:
  std::vector<tenon_donation> donations_;
  std::vector<tenon_value> value_array_;
  std::vector<tenon_node> node_array_;
  tenon_graph wire_{};
};

/// Changes what this mutation changes about a graph. False: nothing.
bool changes_graphs();
void change(Graph& graph);

/// A plan of ours.
struct Plan {
  tenon_plan* honest = nullptr;
  tenon_device* device = nullptr;
  Graph graph;
  bool donates = false;
  std::uint64_t own_workspace = 0;                     ///< bytes of the workspace that are ours, behind the honest plan's
  std::vector<std::vector<unsigned char>> parameters;  ///< by binding: those of the first execution
  std::vector<double> scratch;                         ///< shared by executions, as it should not be
  const tenon_value* borrowed = nullptr;               ///< the caller's, long gone
  tenon_plan_options options{};                        ///< for a plan that is made late
  static Plan& of(tenon_plan* plan) { return *reinterpret_cast<Plan*>(plan); }
};

/// One execution, before and after the honest backend has done its part.
struct Execution {
  Plan& plan;
  std::vector<std::uint64_t> addresses;
  std::uint64_t workspace;
  std::uint64_t honest_workspace_size;
  std::vector<std::vector<unsigned char>> before;  ///< by binding: what outputs held
  std::vector<std::vector<unsigned char>> copies;  ///< operands that took the place of the caller's

  tenon_op op() const { return plan.graph.nodes.empty() ? tenon_op{TENON_OP_NONE} : plan.graph.nodes[0].wire.op; }
  const Graph::Node& node() const { return plan.graph.nodes[0]; }
  /// The first node's operand; NULL if it is absent, not bound, not dense or has no elements.
  const Graph::Value* input(std::size_t index) const;
  const Graph::Value* output(std::size_t index) const;
  unsigned char* bytes_of(const Graph::Value& value) const { return bytes_at(addresses[value.wire.binding]); }
  /// A copy of an operand's bytes takes its place; returns the copy.
  unsigned char* replace(const Graph::Value& value);

  /// Every output that has elements.
  template <class F>
  void each_output(F f) {
    for (const Graph::Value& value : plan.graph.values) {
      if (value.wire.kind == TENON_VALUE_OUTPUT && value.wire.binding != TENON_NO_INDEX && value.size_bytes() > 0) f(value);
    }
  }

 private:
  const Graph::Value* operand(const std::vector<std::uint32_t>& list, std::size_t index) const;
};

/// element = f(element, index) for f32 and f64; other dtypes are left alone.
template <class T, class F>
void change_elements(unsigned char* bytes, std::uint64_t count, F f) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof value);
    value = f(value, i);
    std::memcpy(bytes + i * sizeof(T), &value, sizeof value);
  }
}
template <class F>
void change_floats(unsigned char* bytes, const Graph::Value& value, F f) {
  if (value.wire.desc.dtype == TENON_DTYPE_F32) change_elements<float>(bytes, value.count(), f);
  if (value.wire.desc.dtype == TENON_DTYPE_F64) change_elements<double>(bytes, value.count(), f);
}

/// Changes operands and results as this mutation does.
void before_execution(Execution& run);
void after_execution(Execution& run);

}  // namespace tenon::mutants
