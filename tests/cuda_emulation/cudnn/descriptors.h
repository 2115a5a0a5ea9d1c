// SPDX-License-Identifier: Apache-2.0
// descriptors.h - descriptors of the emulated cuDNN: attributes by name.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace tenon::emulation {

struct Object;
using ObjectPointer = std::shared_ptr<Object>;

/// The values of an attribute: plain values as bytes, descriptors as objects.
struct Values {
  cudnnBackendAttributeType_t type;
  std::int64_t count = 0;
  std::vector<unsigned char> bytes;
  std::vector<ObjectPointer> objects;
};

struct Object {
  explicit Object(cudnnBackendDescriptorType_t kind) : type(kind) {}

  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Values> values;

  bool has(cudnnBackendAttributeName_t name) const { return values.count(name) != 0; }
  /// Value i of an attribute that is set.
  template <class T>
  T get(cudnnBackendAttributeName_t name, std::size_t i = 0) const {
    T value;
    std::memcpy(&value, values.at(name).bytes.data() + i * sizeof value, sizeof value);
    return value;
  }
  template <class T>
  T get_or(cudnnBackendAttributeName_t name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }
  std::int64_t count(cudnnBackendAttributeName_t name) const { return has(name) ? values.at(name).count : 0; }
  const Object& object(cudnnBackendAttributeName_t name, std::size_t i = 0) const { return *values.at(name).objects[i]; }
  template <class T>
  void put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t as, const T* list, std::int64_t count) {
    Values& to = values[name];
    to = {as, count, std::vector<unsigned char>(static_cast<std::size_t>(count) * sizeof(T)), {}};
    if (count > 0) std::memcpy(to.bytes.data(), list, to.bytes.size());
  }
};

/// The object of a handle, shared with all descriptors that refer to it.
inline ObjectPointer& of(cudnnBackendDescriptor_t handle) {
  return *static_cast<ObjectPointer*>(handle);
}

/// Stores a reason for cudnnGetLastErrorString and returns the status.
cudnnStatus_t fail(cudnnStatus_t status, const char* reason);

/// Checks of cudnnBackendFinalize; engines.cpp.
cudnnStatus_t finalize_graph(Object& graph);
cudnnStatus_t finalize_heuristic(Object& heuristic);
cudnnStatus_t finalize_engine(Object& engine);
cudnnStatus_t finalize_configuration(Object& configuration);
cudnnStatus_t finalize_plan(Object& plan);
/// The results of a heuristic, as engine configurations.
std::vector<ObjectPointer> results_of(const Object& heuristic);

/// execution.cpp
cudnnStatus_t execute(cudaStream_t stream, const ObjectPointer& plan, const Object& pack);

}  // namespace tenon::emulation
