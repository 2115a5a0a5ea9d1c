// SPDX-License-Identifier: Apache-2.0
#include "libraries/operation_graph.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace tenon::cuda {
namespace {

constexpr std::int64_t max_candidates = 64;  ///< a heuristic proposes fewer

Descriptor engine_of(const OperationGraph& graph, const GraphTarget& target, std::int64_t index) {
  Descriptor engine(graph.descriptor().functions(), CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.descriptor());
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, index);
  if (target.described != nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.described);
  engine.finalize("an engine");
  return engine;
}

template <class Note>
std::uint32_t notes_of(const Descriptor& engine, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  Note notes[32];
  const std::int64_t count = std::min<std::int64_t>(engine.get(name, type, std::size(notes), notes), std::size(notes));
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // A library newer than the headers may have notes that the headers do not define.
    if (const auto note = static_cast<std::uint32_t>(notes[i]); note < 32) bits |= 1u << note;
  }
  return bits;
}

/// Reads the engine of a configuration.
Candidate candidate_of(Descriptor configuration) {
  const Cudnn& functions = configuration.functions();
  Descriptor engine(functions, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  Candidate made{std::move(configuration), {}};
  made.engine.index = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64);
  made.numerical_notes = notes_of<cudnnBackendNumericalNote_t>(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
  made.behavior_notes = notes_of<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    handles.push_back(choices.emplace_back(functions, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).handle());
  }
  const std::int64_t count = made.configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                    static_cast<std::int64_t>(handles.size()), handles.data());
  for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(count), choices.size()); ++i) {
    const auto type = choices[i].get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE);
    made.engine.settings.emplace_back(static_cast<std::int64_t>(type),
                                      choices[i].get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
  }
  return made;
}

}  // namespace

cudnnDataType_t cudnn_type(tenon_dtype dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return CUDNN_DATA_HALF;
    case TENON_DTYPE_BF16:
      return CUDNN_DATA_BFLOAT16;
    case TENON_DTYPE_F32:
      return CUDNN_DATA_FLOAT;
    default:
      return CUDNN_DATA_DOUBLE;
  }
}

Descriptor::Descriptor(const Cudnn& functions, cudnnBackendDescriptorType_t type) : functions_(&functions) {
  check(functions, functions.cudnnBackendCreateDescriptor(type, &handle_), "BackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) functions_->cudnnBackendDestroyDescriptor(handle_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  check(*functions_, functions_->cudnnBackendSetAttribute(handle_, name, type, count, values), "BackendSetAttribute");
}

void Descriptor::finalize(const char* what) {
  check(*functions_, try_finalize(), what);
}

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t capacity,
                             void* out_values) const {
  std::int64_t count = 0;
  check(*functions_, functions_->cudnnBackendGetAttribute(handle_, name, type, capacity, &count, out_values), "BackendGetAttribute");
  return count;
}

const Descriptor& OperationGraph::tensor(const GraphTensor& as) {
  Descriptor& made = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, as.id == 0 ? virtual_id_++ : as.id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, as.type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, as.dimensions);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, as.strides);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, as.alignment_bytes);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, as.id == 0);
  if (as.by_value) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  made.finalize("a tensor");
  return made;
}

void OperationGraph::append(Descriptor& operation, const char* what) {
  operation.finalize(what);
  operations_.push_back(operation.handle());
}

void OperationGraph::pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const Descriptor& x, const Descriptor* b,
                               const Descriptor& y) {
  add_pointwise({.mode = mode, .compute = compute}, x, b, nullptr, y);
}

void OperationGraph::select(const Descriptor& condition, const Descriptor& x, const Descriptor& b, const Descriptor& y) {
  add_pointwise({.mode = CUDNN_POINTWISE_BINARY_SELECT}, x, &b, &condition, y);
}

void OperationGraph::index(std::int64_t axis, const Descriptor& x, const Descriptor& y) {
  add_pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis}, x, nullptr, nullptr, y);
}

void OperationGraph::add_pointwise(const Pointwise& function, const Descriptor& x, const Descriptor* b, const Descriptor* condition,
                                   const Descriptor& y) {
  Descriptor& described = add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  described.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, function.mode);
  described.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, function.compute);
  if (function.axis >= 0) described.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, function.axis);
  described.finalize("a pointwise function");
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, described);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  if (condition != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *condition);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  append(operation, "a pointwise operation");
}

void OperationGraph::multiply(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
  Descriptor& product = add(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  product.finalize("a matrix product");
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  append(operation, "the operation of a matrix product");
}

void OperationGraph::reduce(cudnnReduceTensorOp_t combine, const Descriptor& x, const Descriptor& y) {
  Descriptor& reduction = add(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, combine);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  reduction.finalize("a reduction");
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
  append(operation, "the operation of a reduction");
}

void OperationGraph::reshape(const Descriptor& x, const Descriptor& y) {
  Descriptor& operation = add(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  append(operation, "a reshaping operation");
}

void OperationGraph::finalize(const GraphTarget& target) {
  Descriptor& graph = add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(operations_.size()),
            operations_.data());
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.finalize("an operation graph");
}

std::string Engine::text() const {
  std::string all = name();
  for (const auto& [type, value] : settings) all += " " + std::to_string(type) + "=" + std::to_string(value);
  return all;
}

Engine Engine::of(const std::string& text) {
  const auto invalid = [&] { return sdk::Error(TENON_INVALID_ARGUMENT, "\"" + text + "\" names no cuDNN engine"); };
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip = [&](std::string_view what) {
    if (!std::string_view(at, static_cast<std::size_t>(end - at)).starts_with(what)) throw invalid();
    at += what.size();
  };
  const auto integer = [&] {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc()) throw invalid();
    at = stop;
    return value;
  };
  Engine engine;
  skip("engine ");
  engine.index = integer();
  while (at != end) {
    skip(" ");
    const std::int64_t type = integer();
    skip("=");
    engine.settings.emplace_back(type, integer());
  }
  return engine;
}

void Rejections::add(const Engine& engine, const std::string& why) {
  reasons_[why].insert(engine.index);
}

std::string Rejections::text() const {
  if (reasons_.empty()) return "none";
  std::string all;
  for (const auto& [why, engines] : reasons_) {
    if (!all.empty()) all += "; ";
    std::string names;
    for (const std::int64_t index : engines) names += (names.empty() ? "" : ", ") + std::to_string(index);
    if (!names.empty()) all += (engines.size() == 1 ? "engine " : "engines ") + names + ": ";
    all += why;
  }
  return all;
}

std::vector<Candidate> candidates(const OperationGraph& graph, const GraphTarget& target, cudnnBackendHeurMode_t mode) {
  const Cudnn& functions = graph.descriptor().functions();
  Descriptor heuristic(functions, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.described != nullptr) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.described);
  const cudnnStatus_t status = heuristic.try_finalize();
  if (is_unsupported(status)) return {};
  check(functions, status, "a heuristic");
  std::vector<Descriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> handles;
  const std::int64_t offered = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  for (std::int64_t i = 0; i < std::min(offered, max_candidates); ++i) {
    handles.push_back(configurations.emplace_back(functions, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
  }
  if (handles.empty()) return {};
  const std::int64_t count = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                           static_cast<std::int64_t>(handles.size()), handles.data());
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(count), configurations.size()); ++i) {
    all.push_back(candidate_of(std::move(configurations[i])));
  }
  return all;
}

Candidate candidate(const OperationGraph& graph, const GraphTarget& target, const Engine& engine) {
  const Cudnn& functions = graph.descriptor().functions();
  const Descriptor described = engine_of(graph, target, engine.index);
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const auto& [type, value] : engine.settings) {
    Descriptor& choice = choices.emplace_back(functions, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type));
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, value);
    choice.finalize("an engine's setting");
    handles.push_back(choice.handle());
  }
  Descriptor configuration(functions, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, described);
  if (!handles.empty()) {
    configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(handles.size()),
                      handles.data());
  }
  configuration.finalize("an engine's configuration");
  return candidate_of(std::move(configuration));
}

ExecutionPlan::ExecutionPlan(const GraphTarget& target, Candidate candidate)
    : configuration_(std::move(candidate.configuration)), plan_(configuration_.functions(), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration_);
  if (target.handle != nullptr) plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  if (target.described != nullptr) plan_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.described);
  plan_.finalize("an execution plan");
  workspace_bytes_ = static_cast<std::size_t>(plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64));
}

cudnnStatus_t ExecutionPlan::execute(cudnnHandle_t handle, std::span<const GraphPointer> pointers, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  for (const GraphPointer& pointer : pointers) {
    ids.push_back(pointer.id);
    addresses.push_back(pointer.address);
  }
  const auto count = static_cast<std::int64_t>(ids.size());
  Descriptor pack(plan_.functions(), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize("the pointers of an execution");
  return plan_.functions().cudnnBackendExecute(handle, plan_.handle(), pack.handle());
}

}  // namespace tenon::cuda
