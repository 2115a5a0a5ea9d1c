// operation_graph.h - cuDNN's graph API as values: an operation graph of a convolution and what follows it, the engines that serve it,
// plans.
//
// Source  NVIDIA: cuDNN Backend API, sections "Data Type References" and "API Functions" of the cudnn_graph library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conv_shape.h"
#include "cudnn_library.h"

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
  /// The status for callers to whom a refusal is an answer.
  cudnnStatus_t try_finalize() { return functions_->cudnnBackendFinalize(handle_); }

  /// How many values there are, of which the first ones are in `out_values`.
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

/// Whom a graph is for. One of the two: a device at hand, or one that is described alone, for which plans are made and cannot run.
struct GraphTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* described = nullptr;  ///< CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};

/// A tensor (N, C, H, W) or a filter (K, C / groups, R, S) as it lies in memory.
struct GraphTensor {
  std::int64_t id = 0;  ///< of the pointer that is given at execution
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t dimensions[4] = {};
  std::int64_t strides[4] = {};  ///< elements
  std::int64_t alignment_bytes = 16;
};

/// The operations of one execution, and their tensors.
class OperationGraph {
 public:
  explicit OperationGraph(const Cudnn& functions) : functions_(&functions) {}

  /// Cross-correlation or one of its gradients, alpha 1, beta 0; sums in `compute`. What is made: y, dx, dw. With `ends` it is the result,
  /// else what the next operation reads.
  void convolve(ConvDirection direction, const ConvShape& window, cudnnDataType_t compute, const GraphTensor& x, const GraphTensor& w,
                const GraphTensor& y, bool ends);
  /// What was made last and b, broadcast, or alone where `b` is NULL; in `compute`.
  void then(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const GraphTensor* b, const GraphTensor& y, bool ends);
  /// Errors  UNSUPPORTED: no engine can serve such a graph.
  void finalize(const GraphTarget& target);

  const Descriptor& descriptor() const { return parts_.back(); }

 private:
  Descriptor& add(cudnnBackendDescriptorType_t type) { return parts_.emplace_back(*functions_, type); }
  /// Of its own number if it is not virtual, which is what stays within an engine.
  std::size_t tensor(const GraphTensor& as, bool is_virtual);

  const Cudnn* functions_;
  std::vector<Descriptor> parts_;  ///< the graph itself last
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::size_t made_ = 0;            ///< of `parts_`, the tensor that was made last
  std::int64_t virtual_id_ = 1000;  ///< beyond all numbers of tensors with memory
};

/// An engine and its settings: enough to make the same plan again.
struct Engine {
  std::int64_t number = -1;
  std::vector<std::pair<std::int64_t, std::int64_t>> settings;  ///< CUDNN_KNOB_TYPE_*, value

  /// "engine 37"
  std::string name() const { return "engine " + std::to_string(number); }
  /// "engine 37 2=0 27=1"
  std::string text() const;
  /// What text() wrote. Errors  INVALID_ARGUMENT for other texts.
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

/// What a heuristic proposes, best first. Empty: nothing.
std::vector<Candidate> candidates(const OperationGraph& graph, const GraphTarget& target, cudnnBackendHeurMode_t mode);
/// A known engine.
/// Errors  UNSUPPORTED: there is no such engine for this graph.
Candidate candidate(const OperationGraph& graph, const GraphTarget& target, const Engine& engine);

/// An address for each number of a tensor.
struct GraphPointer {
  std::int64_t id;
  void* address;
};

/// What can be executed on the device it was made for.
class ExecutionPlan {
 public:
  /// Errors  UNSUPPORTED: the engine does not serve this graph after all.
  ExecutionPlan(const GraphTarget& target, Candidate candidate);
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// In the order of the handle's stream.
  cudnnStatus_t execute(cudnnHandle_t handle, std::span<const GraphPointer> pointers, void* workspace) const;

 private:
  Descriptor configuration_;
  Descriptor plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace tenon::cuda
