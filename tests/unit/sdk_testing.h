// SPDX-License-Identifier: Apache-2.0
// sdk_testing.h - helpers of the SDK tests: a host that counts, a backend of small kernels, a graph builder, and execution with guard zones
// and poisoned memory.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenon/backend.h>

#include "loader/error_text.h"

namespace tenon::sdk_test {

using Floats = std::vector<float>;
using Shape = std::vector<std::int64_t>;
using Strides = std::vector<std::int64_t>;

// ---------------------------------------------------------------- the host

/// Host services with counters. parallel_for runs inline, or on `threads` threads, one range each.
class TestHost {
 public:
  explicit TestHost(std::uint32_t threads = 1);
  const tenon_host* table() const { return &table_; }

  std::atomic<std::int64_t> live_blocks{0}, live_bytes{0}, allocations{0};
  std::atomic<std::int64_t> questions{0};                        ///< calls of cancel_requested
  std::atomic<std::int64_t> cancel_from{std::int64_t{1} << 62};  ///< the first one that is answered with 1
  std::atomic<std::int64_t> allocations_left{-1};                ///< 0: allocate returns NULL from now on; negative: never
  std::atomic<bool> misaligned{false};  ///< an allocation requested less than the 64-byte alignment that the SDK promises

 private:
  tenon_host table_{};
  std::uint32_t threads_;
};

struct ErrorText : loader::ErrorText {
  bool says(const char* part) const { return text().find(part) != std::string::npos; }
};

// ---------------------------------------------------------------- the backends

/// Kernels: Add Mul Neg Relu Sigmoid (strided, in place), Sub (strided), Tanh (dense only), Softmax (dense, in place, scratch),
/// Reshape Flatten Transpose Expand ReduceSum (strided), MatMul (strided, epilogue), Gemm (packs b, and shares that, epilogue with relu
/// alone), SgdStep (in place, groups), SoftmaxCrossEntropyLoss (optional operands), Div (fails as `probe` says), LogSoftmax (rejects rank
/// 1, may follow ReluGrad), ReluGrad, Cast.
tenon_status query_full(const tenon_host_info* host, tenon_backend_info* out_info);
/// Kernels of query_full, and one that makes several copies at once.
tenon_status query_copying(const tenon_host_info* host, tenon_backend_info* out_info);
/// MatMul, of which several with at most 64 elements on the left run at once, and which takes the gradient of a relu; Gemm, which sums
/// columns; Add Neg Tanh Softmax ReluGrad ReduceSum Reshape.
tenon_status query_together(const tenon_host_info* host, tenon_backend_info* out_info);
/// Neg, Tanh and no copy kernel. It has another name, other capabilities, a BLAS table, and no devices.
tenon_status query_small(const tenon_host_info* host, tenon_backend_info* out_info);
/// Tanh and Transpose for dense operands, Neg for any; no copy kernel.
tenon_status query_dense(const tenon_host_info* host, tenon_backend_info* out_info);

/// Counters and injected faults of the kernels. Only one test may use it at a time.
struct Probe {
  std::atomic<int> packs{0};     ///< calls of Traits::pack
  std::atomic<int> kernels{0};   ///< kernel calls
  std::atomic<int> fail_div{0};  ///< Div throws 1: sdk::Error, 2: std::exception, 3: an int, 4: std::bad_alloc, 5: from parallel_for
  std::atomic<bool> fail_pack{false};
  std::atomic<bool> fail_together{false};                  ///< several products at once throw an sdk::Error
  std::atomic<bool> copies_one_by_one{false};              ///< the kernel that makes several copies at once has no run_together
  std::atomic<bool> bad_scratch{false};                    ///< scratch misaligned or absent
  std::atomic<std::uint64_t> scratch_at{0};                ///< address of the last scratch memory
  std::atomic<std::size_t> unpacked_scratch{0};            ///< bytes that Gemm needs if b is not packed
  std::atomic<bool> no_traits_host{false};                 ///< a Traits function got a Call without host services
  std::atomic<std::uint32_t> math{99}, deterministic{99};  ///< options of the last Sigmoid
};
inline Probe probe;

inline tenon_host_info host_info(std::uint32_t lowest = TENON_ABI_MINOR, std::uint32_t highest = TENON_ABI_MINOR) {
  return tenon_host_info{
      .struct_size = sizeof(tenon_host_info), .abi_major = TENON_ABI_MAJOR, .abi_minor_lowest = lowest, .abi_minor_highest = highest};
}

/// A created backend with device 0 open and a stream. The destructor checks that all host memory was freed.
class Session {
 public:
  explicit Session(std::uint32_t threads = 1, tenon_backend_query_fn query = query_full);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  TestHost host;
  tenon_backend_info info{};
  tenon_backend* backend = nullptr;
  const tenon_backend_table* table = nullptr;
  tenon_device* device = nullptr;
  tenon_stream* stream = nullptr;
};

// ---------------------------------------------------------------- graphs

/// A graph builder. The functions return indices of values.
class Net {
 public:
  struct Value {
    std::uint32_t kind;
    Shape shape;
    Strides strides;  ///< empty: dense
    tenon_dtype dtype;
    std::vector<unsigned char> bytes;  ///< constants
    std::uint32_t binding = TENON_NO_INDEX;
    tenon_packed* packed = nullptr;  ///< handed over to the plan
    std::int64_t count() const;
  };
  struct Node {
    tenon_op op;
    std::uint32_t version;
    std::vector<std::uint32_t> inputs, outputs;
    std::vector<std::uint64_t> attributes;
    std::uint64_t id;
  };

  std::uint32_t input(Shape shape, Strides strides = {}, tenon_dtype dtype = TENON_DTYPE_F32) {
    return add(TENON_VALUE_INPUT, std::move(shape), std::move(strides), dtype);
  }
  std::uint32_t parameter(Shape shape) { return add(TENON_VALUE_PARAMETER, std::move(shape), {}, TENON_DTYPE_F32); }
  std::uint32_t output(Shape shape, tenon_dtype dtype = TENON_DTYPE_F32) { return add(TENON_VALUE_OUTPUT, std::move(shape), {}, dtype); }
  std::uint32_t internal(Shape shape, tenon_dtype dtype = TENON_DTYPE_F32) {
    return add(TENON_VALUE_INTERNAL, std::move(shape), {}, dtype);
  }
  std::uint32_t constant(Shape shape, const Floats& data);

  void node(tenon_op op, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs) {
    node(op, std::move(inputs), std::move(outputs), tenon_attributes_none{sizeof(tenon_attributes_none), 0});
  }
  template <class Attributes>
  void node(tenon_op op, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs, const Attributes& attributes) {
    std::vector<std::uint64_t> copy((sizeof attributes + 7) / 8);
    std::memcpy(copy.data(), &attributes, sizeof attributes);
    add_node(op, std::move(inputs), std::move(outputs), std::move(copy));
  }
  void donate(std::uint32_t input, std::uint32_t output) { donations.push_back({input, output}); }

  /// The ABI form, valid until the net changes.
  const tenon_graph& abi_graph();

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<tenon_donation> donations;
  std::uint32_t binding_count = 0;

  // The ABI arrays, for tests that modify them.
  tenon_graph graph{};
  std::vector<tenon_value> abi_values;
  std::vector<tenon_node> abi_nodes;

 private:
  std::uint32_t add(std::uint32_t kind, Shape shape, Strides strides, tenon_dtype dtype);
  void add_node(tenon_op op, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs, std::vector<std::uint64_t> attributes);
};

tenon_attributes_axes axes(std::initializer_list<std::int64_t> list, bool keepdims = false);
tenon_attributes_axis axis(std::int64_t value);
tenon_attributes_gemm gemm_attributes(double alpha = 1, double beta = 1);
tenon_attributes_sgd sgd_attributes(double momentum = 0);
tenon_plan_options options(std::uint32_t fusion = TENON_FUSION_FULL);

/// Multi-dimensional index of element i of a dense shape.
Shape index_of(std::int64_t i, const Shape& shape);
/// Evaluates the graph node by node on dense arrays that are never reused.
/// bound: dense elements of inputs and parameters. Returns dense elements of every value.
std::vector<Floats> evaluate(const Net& net, const std::map<std::uint32_t, Floats>& bound);

// ---------------------------------------------------------------- running

/// A plan, its workspace, and a guarded buffer for each binding; donated pairs share one.
class Run {
 public:
  Run(Session& session, Net& net, const tenon_plan_options& given = options()) : Run(nullptr, &session, net, given) {}
  /// In a session of its own.
  explicit Run(Net& net, const tenon_plan_options& given = options()) : Run(std::make_unique<Session>(), nullptr, net, given) {}
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void set(std::uint32_t value, const Floats& dense);  ///< writes each element at its strided offset
  Floats get(std::uint32_t value) const;
  template <class T>
  T* data(std::uint32_t value) {
    return reinterpret_cast<T*>(addresses[net_.values[value].binding]);
  }
  tenon_status execute(tenon_error* error = nullptr);
  /// Sets inputs, poisons the workspace, executes, requires success and intact guard zones.
  void operator()(std::initializer_list<std::pair<std::uint32_t, Floats>> inputs = {});
  tenon_bindings bindings() const;

  tenon_plan* plan = nullptr;
  tenon_plan_info info{};
  std::vector<std::uint64_t> addresses;
  std::uint64_t epoch = 1;
  std::uint64_t workspace = 0;
  std::uint64_t execution_id = 0;
  const tenon_run* run = nullptr;

 private:
  struct Buffer {
    std::vector<unsigned char> storage;
    unsigned char* begin = nullptr;
    std::size_t size = 0;
    void make(std::size_t bytes);
    bool whole() const;
  };
  Run(std::unique_ptr<Session> own, Session* session, Net& net, const tenon_plan_options& given);
  void for_each_offset(std::uint32_t value, void (*body)(void*, std::int64_t i, std::int64_t offset), void* context) const;

  std::unique_ptr<Session> own_session_;
  Session& session_;
  Net& net_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> buffer_of_;  ///< per binding
  Buffer workspace_buffer_;
};

}  // namespace tenon::sdk_test
