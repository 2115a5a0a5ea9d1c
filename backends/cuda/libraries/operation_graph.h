// SPDX-License-Identifier: Apache-2.0
// operation_graph.h - a value-type wrapper of cuDNN's graph API: operation graphs, engines, plans.
//
// Source  NVIDIA: cuDNN Backend API, sections "Data Type References" and "API Functions" of the cudnn_graph library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libraries/cudnn_library.h"

namespace tenon::cuda {

/// A descriptor of the graph API: attributes first, then `finalize`.
class Descriptor {
 public:
  Descriptor(const Cudnn& functions, cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : functions_(other.functions_), handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) { set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_); }
  void finalize(const char* what);
  /// Returns the status, for callers that handle failure.
  cudnnStatus_t try_finalize() { return functions_->cudnnBackendFinalize(handle_); }

  /// Writes up to `capacity` values and returns the total number of values.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t capacity, void* out_values) const;
  template <class T>
  T get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    T value{};
    get(name, type, 1, &value);
    return value;
  }

  cudnnBackendDescriptor_t handle() const { return handle_; }
  const Cudnn& functions() const { return *functions_; }

 private:
  const Cudnn* functions_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// The target of a graph: either a real device, or a device description, whose plans can be created but not run.
struct GraphTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* described = nullptr;  ///< CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};

/// cuDNN's name of f16, bf16, f32 or f64.
cudnnDataType_t cudnn_type(tenon_dtype dtype);

/// A tensor of four dimensions with its layout in memory.
struct GraphTensor {
  std::int64_t id = 0;  ///< identifies the pointer passed at execution; 0: virtual, the tensor exists only inside an engine
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t dimensions[4] = {1, 1, 1, 1};
  std::int64_t strides[4] = {1, 1, 1, 1};  ///< elements
  std::int64_t alignment_bytes = 16;
  bool by_value = false;  ///< one element, whose pointer is in host memory and is read when the execution is enqueued
};

/// The operations of one execution, in an order in which each reads only what earlier ones computed, and their tensors.
class OperationGraph {
 public:
  explicit OperationGraph(const Cudnn& functions) : functions_(&functions) {}

  /// Adds a tensor. References that this class returns are valid as long as the graph or what it was moved to.
  const Descriptor& tensor(const GraphTensor& as);

  /// y = mode(x, b), where b is broadcast (NULL: unary). `compute` is the type of the arithmetic.
  void pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const Descriptor& x, const Descriptor* b, const Descriptor& y);
  /// y = condition ? x : b
  void select(const Descriptor& condition, const Descriptor& x, const Descriptor& b, const Descriptor& y);
  /// y = the index along `axis`, with the shape of x.
  void index(std::int64_t axis, const Descriptor& x, const Descriptor& y);
  /// c = a b for matrices of the last two dimensions, with f32 sums.
  void multiply(const Descriptor& a, const Descriptor& b, const Descriptor& c);
  /// Combines the elements along the dimensions in which y is smaller than x.
  void reduce(cudnnReduceTensorOp_t combine, const Descriptor& x, const Descriptor& y);
  /// y has the elements of x at the same offsets: with exchanged strides, a transposition.
  void reshape(const Descriptor& x, const Descriptor& y);

  /// For operations that this class does not know: a descriptor that the graph owns, and one that is its next operation.
  Descriptor& add(cudnnBackendDescriptorType_t type) { return parts_.emplace_back(*functions_, type); }
  void append(Descriptor& operation, const char* what);

  /// Errors  UNSUPPORTED: no engine supports such a graph.
  void finalize(const GraphTarget& target);

  const Descriptor& descriptor() const { return parts_.back(); }

 private:
  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    std::int64_t axis = -1;  ///< -1: none
  };
  void add_pointwise(const Pointwise& function, const Descriptor& x, const Descriptor* b, const Descriptor* condition, const Descriptor& y);

  const Cudnn* functions_;
  std::deque<Descriptor> parts_;  ///< the graph itself last
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::int64_t virtual_id_ = 1000;  ///< greater than all ids of tensors with memory
};

/// An engine and its settings: enough to recreate a plan.
struct Engine {
  std::int64_t index = -1;
  std::vector<std::pair<std::int64_t, std::int64_t>> settings;  ///< CUDNN_KNOB_TYPE_*, value

  /// "engine 37"
  std::string name() const { return "engine " + std::to_string(index); }
  /// "engine 37 2=0 27=1"
  std::string text() const;
  /// Parses a result of text().
  /// Errors  INVALID_ARGUMENT for other texts.
  static Engine of(const std::string& text);
  bool operator==(const Engine&) const = default;
};

/// An engine that may be finalised into a plan.
struct Candidate {
  Descriptor configuration;
  Engine engine;
  std::uint32_t numerical_notes = 0;  ///< 1 << CUDNN_NUMERICAL_NOTE_*
  std::uint32_t behavior_notes = 0;   ///< 1 << CUDNN_BEHAVIOR_NOTE_*
};

/// The proposals of a heuristic, best first; may be empty.
std::vector<Candidate> candidates(const OperationGraph& graph, const GraphTarget& target, cudnnBackendHeurMode_t mode);
/// The candidate for a given engine.
/// Errors  UNSUPPORTED: there is no such engine for this graph.
Candidate candidate(const OperationGraph& graph, const GraphTarget& target, const Engine& engine);

/// Collects why engines were rejected, as one line; engine settings are left out.
class Rejections {
 public:
  void add(const Engine& engine, const std::string& why);
  /// A reason that applies to a whole query to cuDNN.
  void add(const std::string& why) { reasons_.try_emplace(why); }
  /// "engines 38, 67: its tensor cores ...; engine 1: ..."; "none" if no engine was rejected.
  std::string text() const;

 private:
  std::map<std::string, std::set<std::int64_t>> reasons_;
};

/// The address of the tensor with an id.
struct GraphPointer {
  std::int64_t id;
  void* address;
};

/// A plan that can be executed on the device that it was created for.
class ExecutionPlan {
 public:
  /// Errors  UNSUPPORTED: the engine does not support this graph after all.
  ExecutionPlan(const GraphTarget& target, Candidate candidate);
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Enqueues the plan on the handle's stream.
  cudnnStatus_t execute(cudnnHandle_t handle, std::span<const GraphPointer> pointers, void* workspace) const;

 private:
  Descriptor configuration_;
  Descriptor plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace tenon::cuda
