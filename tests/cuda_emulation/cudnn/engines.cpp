// SPDX-License-Identifier: Apache-2.0
// The engines of the emulated cuDNN: supported problems, notes and workspaces. Indices and notes resemble those of cuDNN 9.19 on an H200.
//
// TENON_CUDNN_EMULATION_ENGINES="none" or "28,44" selects the available engines.
#include <cstdlib>
#include <string>

#include "attention.h"

namespace tenon::emulation {

Tensor tensor_of(const Object& object) {
  Tensor tensor;
  tensor.id = object.get<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = object.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  tensor.alignment = object.get<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.is_virtual = object.get_or<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  for (std::size_t d = 0; d < 4; ++d) {
    tensor.dimensions[d] = object.get<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, d);
    tensor.strides[d] = object.get<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, d);
  }
  return tensor;
}

namespace {

struct Names {
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};
Names names_of(cudnnBackendDescriptorType_t operation) {
  switch (operation) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

bool is_convolution(const Object& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

constexpr std::uint32_t note(int id) {
  return 1u << id;
}
constexpr std::uint32_t tensor_cores = note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), any_order = note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
                        narrow_sums = note(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
                        winograd = note(CUDNN_NUMERICAL_NOTE_WINOGRAD) | note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6),
                        fourier = note(CUDNN_NUMERICAL_NOTE_FFT), strict_nan = note(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

struct Offer {
  std::int64_t index;
  std::uint32_t numerical_notes;
  std::uint32_t behavior_notes;
  std::int64_t workspace_bytes;
  bool last_resort;
  bool (*serves)(const Convolution&);
};
bool is_aligned(const Convolution& c) {
  return c.x.alignment >= 16 && c.w.alignment >= 16 && c.y.alignment >= 16;
}
bool is_plain(const Convolution& c) {
  return c.addends.empty();
}
bool is_forward(const Convolution& c) {
  return c.operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
}
bool on_tensor_cores(const Convolution& c) {
  return c.x.type != CUDNN_DATA_DOUBLE && is_aligned(c) && c.groups() == 1;
}
/// Best first.
constexpr Offer offers[] = {
    {99, fourier, 0, 8 * mebibyte, false, [](const Convolution& c) { return is_plain(c) && c.x.type == CUDNN_DATA_FLOAT; }},
    {61, winograd, 0, 3 * mebibyte, false, [](const Convolution& c) { return is_plain(c) && c.x.type == CUDNN_DATA_FLOAT; }},
    {38, tensor_cores, 0, mebibyte, false, [](const Convolution& c) { return is_plain(c) && on_tensor_cores(c); }},
    {7, tensor_cores, note(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION), 131, false,
     [](const Convolution& c) { return !is_plain(c) && on_tensor_cores(c) && c.channels_last() && c.x.dimensions[1] % 2 == 0; }},
    {36, tensor_cores | narrow_sums, 0, 0, false,
     [](const Convolution& c) { return is_plain(c) && on_tensor_cores(c) && c.x.type == CUDNN_DATA_HALF; }},
    {44, 0, 0, 0, false,
     [](const Convolution& c) { return c.x.type == CUDNN_DATA_FLOAT && c.addends.size() == 1 && is_forward(c) && !c.channels_last(); }},
    {20, any_order, 0, 0, false, [](const Convolution& c) { return is_plain(c) && !is_forward(c); }},
    {28, 0, 0, 2 * mebibyte, false,
     [](const Convolution& c) { return is_plain(c) && (c.x.type == CUDNN_DATA_FLOAT || c.x.type == CUDNN_DATA_DOUBLE); }},
    {1, 0, 0, 2304, true, is_plain},
    {0, strict_nan, 0, 0, true, [](const Convolution& c) { return is_plain(c) || is_forward(c); }},
};

/// For attention, best first.
constexpr Offer attention_offers[] = {
    {2, tensor_cores, note(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION), 0, false, nullptr},
    {6, tensor_cores, note(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION), 4096, false, nullptr},
};

bool is_there(std::int64_t index) {
  const char* const list = std::getenv("TENON_CUDNN_EMULATION_ENGINES");
  return list == nullptr || ("," + std::string(list) + ",").find("," + std::to_string(index) + ",") != std::string::npos;
}

const Offer* find(std::int64_t index) {
  for (const Offer& offer : offers) {
    if (offer.index == index && is_there(index)) return &offer;
  }
  for (const Offer& offer : attention_offers) {
    if (offer.index == index && is_there(index)) return &offer;
  }
  return nullptr;
}

ObjectPointer made(cudnnBackendDescriptorType_t type) {
  auto object = std::make_shared<Object>(type);
  object->finalized = true;
  return object;
}

void put_objects(Object& object, cudnnBackendAttributeName_t name, std::vector<ObjectPointer> list) {
  const auto count = static_cast<std::int64_t>(list.size());
  object.values[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, count, {}, std::move(list)};
}

template <class Note>
void put_notes(Object& engine, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::uint32_t bits) {
  std::vector<Note> notes;
  for (int i = 0; i < 32; ++i) {
    if ((bits >> i & 1) != 0) notes.push_back(static_cast<Note>(i));
  }
  engine.put(name, type, notes.data(), static_cast<std::int64_t>(notes.size()));
}

ObjectPointer option(cudnnBackendKnobType_t type, std::int64_t value) {
  ObjectPointer choice = made(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  choice->put(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type, 1);
  choice->put(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value, 1);
  return choice;
}

bool same_size(const std::int64_t (&a)[4], const std::int64_t (&b)[4], bool broadcast) {
  for (int d = 0; d < 4; ++d) {
    if (a[d] != b[d] && !(broadcast && b[d] == 1)) return false;
  }
  return true;
}

}  // namespace

const char* read(const Object& graph, Convolution& out) {
  const auto& operations = graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects;
  const Object& first = *operations[0];
  if (!is_convolution(first)) return "the graph does not begin with a convolution";
  out.operation = first.type;
  const Names names = names_of(first.type);
  out.x = tensor_of(first.object(names.x));
  out.w = tensor_of(first.object(names.w));
  out.y = tensor_of(first.object(names.y));
  if (first.get_or(names.alpha, 0.0) != 1 || first.get_or(names.beta, 1.0) != 0) return "alpha is not 1 or beta not 0";
  const Object& window = first.object(names.window);
  if (window.get<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return "the mode is not cross-correlation";
  out.compute = window.get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  if ((out.x.type == CUDNN_DATA_DOUBLE) != (out.compute == CUDNN_DATA_DOUBLE)) return "the compute type does not match the operands";
  if (out.w.dimensions[1] == 0 || out.x.dimensions[1] % out.w.dimensions[1] != 0)
    return "the channels do not match the groups of the filters";
  if (out.x.dimensions[0] != out.y.dimensions[0] || out.w.dimensions[0] != out.y.dimensions[1]) return "x, w and y do not fit";
  for (std::size_t d = 0; d < 2; ++d) {
    out.strides[d] = window.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, d);
    out.dilations[d] = window.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, d);
    out.before[d] = window.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, d);
    out.after[d] = window.get<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, d);
    const std::int64_t extent = out.dilations[d] * (out.w.dimensions[2 + d] - 1) + 1;
    const std::int64_t size = (out.x.dimensions[2 + d] + out.before[d] + out.after[d] - extent) / out.strides[d] + 1;
    if (size != out.y.dimensions[2 + d]) return "the result does not have the size of the convolution";
  }
  // The output of the previous operation, which the next one must read.
  const Object* last = first.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? &first.object(names.y)
                       : first.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? &first.object(names.x)
                                                                                                    : &first.object(names.w);
  for (std::size_t i = 1; i < operations.size(); ++i) {
    const Object& next = *operations[i];
    if (next.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return "the next operation is not pointwise";
    const Object& function = next.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    if (function.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) != CUDNN_POINTWISE_ADD) return "the pointwise function is not a sum";
    if (&next.object(CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != last) return "the graph is not a chain";
    if (!tensor_of(*last).is_virtual) return "a tensor between operations is not virtual";
    if (!next.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) return "the sum has one operand";
    const Tensor addend = tensor_of(next.object(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    if (!same_size(tensor_of(*last).dimensions, addend.dimensions, true)) return "the addend does not have the size of the result";
    out.addends.push_back(addend);
    last = &next.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  }
  out.made = tensor_of(*last);
  if (out.made.is_virtual) return "no result is stored";
  return nullptr;
}

bool is_attention(const Object& graph) {
  const std::int64_t first = graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).objects[0]->type;
  return first == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR || first == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
}

/// Whether an engine runs a graph.
bool serves(const Offer& offer, const Object& graph) {
  if (offer.serves == nullptr) return is_attention(graph) && refusal_of_attention(graph) == nullptr;
  Convolution convolution;
  return !is_attention(graph) && read(graph, convolution) == nullptr && offer.serves(convolution);
}

cudnnStatus_t finalize_graph(Object& graph) {
  if (is_attention(graph)) return CUDNN_STATUS_SUCCESS;
  Convolution convolution;
  const char* const wrong = read(graph, convolution);
  return wrong == nullptr ? CUDNN_STATUS_SUCCESS : fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, wrong);
}

cudnnStatus_t finalize_heuristic(Object&) {
  return CUDNN_STATUS_SUCCESS;
}

std::vector<ObjectPointer> results_of(const Object& heuristic) {
  const ObjectPointer& graph = heuristic.values.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).objects[0];
  const bool last_resort = heuristic.get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  std::vector<ObjectPointer> found;
  const auto propose = [&](const Offer& offer) {
    if (offer.last_resort != last_resort || !is_there(offer.index) || !serves(offer, *graph)) return;
    ObjectPointer engine = made(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    put_objects(*engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {graph});
    engine->put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &offer.index, 1);
    finalize_engine(*engine);
    ObjectPointer configuration = made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    put_objects(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
    put_objects(*configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                {option(CUDNN_KNOB_TYPE_TILE_SIZE, offer.index % 5), option(CUDNN_KNOB_TYPE_STAGES, 4)});
    found.push_back(configuration);
  };
  for (const Offer& offer : offers) propose(offer);
  for (const Offer& offer : attention_offers) propose(offer);
  return found;
}

cudnnStatus_t finalize_engine(Object& engine) {
  const Offer* const offer = find(engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  if (offer == nullptr || !serves(*offer, engine.object(CUDNN_ATTR_ENGINE_OPERATION_GRAPH))) {
    return fail(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not serve this graph");
  }
  put_notes<cudnnBackendNumericalNote_t>(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, offer->numerical_notes);
  put_notes<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, offer->behavior_notes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_configuration(Object&) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(Object& plan) {
  const Object& configuration = plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Object& engine = configuration.object(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Offer* const offer = find(engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  if (offer == nullptr) return fail(CUDNN_STATUS_NOT_SUPPORTED, "there is no such engine");
  plan.put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &offer->workspace_bytes, 1);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace tenon::emulation
