// SPDX-License-Identifier: Apache-2.0
// mutant.h - a backend with one defect, which the build selects.
//
// The unmodified backend is a copy of the reference backend. The slots that a mutation of mutants.def changes are wrapped by subject:
// backend.cpp (query, lifecycle), memory.cpp, streams.cpp, captures.cpp, graphs.cpp, results.cpp and packing.cpp (plans), collectives.cpp,
// vendor_ops.cpp, blas.cpp, process.cpp (process state).
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tenon/backend.h>

#include "mutation.h"

namespace tenon::mutants {

inline bool is(Mutation m) {
  return mutation == m;
}

/// The table of the unmodified backend; NULL before the first `create`.
const tenon_backend_table& real();
/// The services that the backend of this device was created with.
const tenon_host* host_of(tenon_device* device);

/// Writes the text of an error and returns the status.
tenon_status say(tenon_error* error, tenon_status status, const char* text);

/// Replaces the slots of one subject in `table`.
void spoil_memory(tenon_backend_table& table);
void spoil_streams(tenon_backend_table& table);
void spoil_captures(tenon_backend_table& table);
void spoil_plans(tenon_backend_table& table);
void spoil_packing(tenon_backend_table& table);
void spoil_collectives(tenon_backend_table& table);
void spoil_blas(tenon_backend_table& table);
void spoil_extension(tenon_backend_table& table);
/// Adds the mutant's own op, "com.example.Rectify", to the answer of the query.
void declare_vendor_ops(tenon_backend_info& info);

/// Waits for the work of a stream and returns the underlying unmodified stream.
tenon_stream* drained(tenon_stream* stream);
/// Whether work runs asynchronously, on a thread of each stream.
bool is_asynchronous();

/// A call on a stream, as a recording keeps it.
using Work = std::function<tenon_status(tenon_stream*, tenon_error*)>;
/// Whether the stream is being recorded: its work is kept by record() then, and not run.
bool is_recorded(tenon_stream* stream);
void record(tenon_stream* stream, tenon_device* device, Work work);

/// Points at which a mutation may misuse the process.
enum class Moment { query, create, execute, shutdown };
void misbehave(Moment moment);

inline unsigned char* bytes_at(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
}

// ---------------------------------------------------------------- plans

std::uint64_t size_of(tenon_dtype dtype);

/// A deep copy of a graph, which may be changed.
class Graph {
 public:
  struct Value {
    std::vector<std::int64_t> shape;
    std::optional<std::vector<std::int64_t>> strides;
    tenon_value abi;

    bool is_dense() const { return !strides.has_value(); }
    std::uint64_t count() const;
    std::uint64_t size_bytes() const { return count() * size_of(abi.desc.dtype); }
  };
  struct Node {
    std::vector<std::uint64_t> attributes;
    std::vector<std::uint32_t> inputs, outputs;
    std::string name;
    tenon_node abi;

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
  /// Whether a copy can be made. Other graphs are passed to the unmodified backend, which refuses them.
  static bool can_copy(const tenon_graph& graph);
  /// Points into this object.
  const tenon_graph& abi();

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::uint32_t binding_count = 0;

 private:
  std::vector<tenon_donation> donations_;
  std::vector<tenon_value> value_array_;
  std::vector<tenon_node> node_array_;
  tenon_graph abi_{};
};

/// Whether this mutation changes graphs; change() does.
bool changes_graphs();
void change(Graph& graph);
/// Makes a node of the mutant's own op a Relu, which the unmodified backend has.
void rectify(Graph::Node& node);

struct PackedCopy;

/// A plan of the mutant, around an unmodified plan.
struct Plan {
  tenon_plan* unmodified = nullptr;
  tenon_device* device = nullptr;
  Graph graph;
  bool donates = false;
  std::uint64_t own_workspace = 0;                     ///< bytes of the workspace for the mutant, after those of the unmodified plan
  std::vector<std::vector<unsigned char>> parameters;  ///< by binding: the parameters of the first execution
  std::vector<double> scratch;                         ///< shared by executions, which is the defect
  const tenon_value* borrowed = nullptr;               ///< the caller's values, which may be gone
  tenon_plan_options options{};                        ///< for a plan that is made at execution
  std::uint64_t epoch = 0;                             ///< of the last execution
  std::shared_ptr<PackedCopy> packed;                  ///< the packed operand that was handed over
  std::uint32_t packed_binding = TENON_NO_INDEX;       ///< of a parameter; none: it is a constant
  static Plan& of(tenon_plan* plan) { return *reinterpret_cast<Plan*>(plan); }
};

/// Whether this plugin offers packed operands, which plans may share. Then the unmodified backend reads the copies as if they were the
/// operands: constants in the graph that it gets, parameters at the addresses that it gets.
bool shares_packed();
void read_packed_constants(Graph& graph);
/// Notes the packed operand of the graph in the plan. Refuses one of another form.
tenon_status take_packed(const Graph& graph, Plan& plan, tenon_error* error);
/// Brings the plan's packed parameter up to date, and replaces its address. The caller holds the lock while it reads.
std::unique_lock<std::mutex> read_packed(Plan& plan, std::uint64_t epoch, std::vector<std::uint64_t>& addresses);
/// Bytes that the unmodified plan has and this one was handed.
std::uint64_t packed_constant_bytes(const Plan& plan);

/// One execution, before and after that of the unmodified backend.
struct Execution {
  Plan& plan;
  std::vector<std::uint64_t> addresses;
  std::uint64_t workspace;
  std::uint64_t unmodified_workspace_size;
  std::vector<std::vector<unsigned char>> before;  ///< by binding: the previous content of outputs
  std::vector<std::vector<unsigned char>> copies;  ///< operands that replace the caller's

  tenon_op op() const { return plan.graph.nodes.empty() ? tenon_op{TENON_OP_NONE} : plan.graph.nodes[0].abi.op; }
  const Graph::Node& node() const { return plan.graph.nodes[0]; }
  /// The first node's operand; NULL if it is absent, not bound, not dense or has no elements.
  const Graph::Value* input(std::size_t index) const;
  const Graph::Value* output(std::size_t index) const;
  unsigned char* bytes_of(const Graph::Value& value) const { return bytes_at(addresses[value.abi.binding]); }
  /// Replaces an operand by a copy of its bytes, which it returns.
  unsigned char* replace(const Graph::Value& value);

  /// Every output that has elements.
  template <class F>
  void each_output(F f) {
    for (const Graph::Value& value : plan.graph.values) {
      if (value.abi.kind == TENON_VALUE_OUTPUT && value.abi.binding != TENON_NO_INDEX && value.size_bytes() > 0) f(value);
    }
  }

 private:
  const Graph::Value* operand(const std::vector<std::uint32_t>& list, std::size_t index) const;
};

/// element = f(element, index) for f32 and f64; other dtypes are not changed.
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
  if (value.abi.desc.dtype == TENON_DTYPE_F32) change_elements<float>(bytes, value.count(), f);
  if (value.abi.desc.dtype == TENON_DTYPE_F64) change_elements<double>(bytes, value.count(), f);
}

/// Changes operands and results as this mutation does.
void before_execution(Execution& run);
void after_execution(Execution& run);

}  // namespace tenon::mutants
