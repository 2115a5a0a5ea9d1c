// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph API as documented, for convolutions with their addends and for attention: descriptors and their rules.
//
// It is stricter than NVIDIA's: attributes whose type or count differs from the documentation are always rejected.
#include <handle_memory.h>

#include <cstdio>
#include <memory>
#include <string>

#include "descriptors.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  tenon::emulation::HandleMemory memory = {};
};

namespace tenon::emulation {
namespace {

thread_local std::string last_reason;

/// The type and count of an attribute's values; a maximum of 0 means any number.
struct Rule {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  bool required;
};

constexpr cudnnBackendDescriptorType_t tensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR, window = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                                       pointwise = CUDNN_BACKEND_POINTWISE_DESCRIPTOR, product = CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                                       reduction = CUDNN_BACKEND_REDUCTION_DESCRIPTOR, multiply = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                       reduce = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                       reshape = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                       forward = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                       backward_data = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       backward_filter = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                       on_points = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                       graph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, heuristic = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                                       engine = CUDNN_BACKEND_ENGINE_DESCRIPTOR, configuration = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                       setting = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, plan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                                       pack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
constexpr cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

constexpr Rule rules[] = {
    {tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, true},
    {tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, true},
    {tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, true},
    {tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, true},
    {tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, true},
    {tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, false},
    {tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, false},
    {window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, true},
    {window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, true},
    {window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, true},
    {window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, true},
    {window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, true},
    {window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, true},
    {window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, true},
    {pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, true},
    {pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, true},
    {pointwise, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, false},
    {product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, true},
    {reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, true},
    {reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, true},
#define TENON_CONVOLUTION(type, prefix, X, W, Y)                                                                                        \
  {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##X, descriptor, 1, true}, {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##W, descriptor, 1, true}, \
      {type, CUDNN_ATTR_OPERATION_CONVOLUTION_##Y, descriptor, 1, true}, {                                                              \
    type, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC, descriptor, 1, true                                                    \
  }
    TENON_CONVOLUTION(forward, FORWARD, FORWARD_X, FORWARD_W, FORWARD_Y),
    TENON_CONVOLUTION(backward_data, BWD_DATA, BWD_DATA_DX, BWD_DATA_W, BWD_DATA_DY),
    TENON_CONVOLUTION(backward_filter, BWD_FILTER, BWD_FILTER_X, BWD_FILTER_DW, BWD_FILTER_DY),
#undef TENON_CONVOLUTION
    {on_points, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, descriptor, 1, true},
    {on_points, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, descriptor, 1, true},
    {on_points, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, descriptor, 1, false},
    {on_points, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, descriptor, 1, false},
    {on_points, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, descriptor, 1, true},
    {multiply, CUDNN_ATTR_OPERATION_MATMUL_ADESC, descriptor, 1, true},
    {multiply, CUDNN_ATTR_OPERATION_MATMUL_BDESC, descriptor, 1, true},
    {multiply, CUDNN_ATTR_OPERATION_MATMUL_CDESC, descriptor, 1, true},
    {multiply, CUDNN_ATTR_OPERATION_MATMUL_DESC, descriptor, 1, true},
    {reduce, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, descriptor, 1, true},
    {reduce, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, descriptor, 1, true},
    {reduce, CUDNN_ATTR_OPERATION_REDUCTION_DESC, descriptor, 1, true},
    {reshape, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, descriptor, 1, true},
    {reshape, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, descriptor, 1, true},
    {graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, true},
    {graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, descriptor, 0, true},
    {heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, descriptor, 1, true},
    {heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, true},
    {engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, descriptor, 1, true},
    {engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, true},
    {configuration, CUDNN_ATTR_ENGINECFG_ENGINE, descriptor, 1, true},
    {configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, descriptor, 0, false},
    {setting, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, true},
    {setting, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, true},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, descriptor, 1, true},
    {plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, true},
    {pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 0, true},
    {pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 0, true},
    {pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, false},
};

/// Whether a name is one of an operation's factors alpha and beta, which are f32 or f64.
bool is_factor(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA:
      return true;
    default:
      return false;
  }
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:  // enumerations, f32
      return 4;
  }
}

cudnnStatus_t finalize_tensor(const Object& object) {
  const auto type = object.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  const std::int64_t element = type == CUDNN_DATA_DOUBLE                              ? 8
                               : type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? 4
                               : type == CUDNN_DATA_BOOLEAN                           ? 1
                                                                                      : 2;
  const auto alignment = object.get<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  if (alignment % element != 0) return fail(CUDNN_STATUS_BAD_PARAM, "alignment is not a multiple of the element's size");
  for (std::size_t d = 0; d < 4; ++d) {
    if (object.get<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, d) < 1) return fail(CUDNN_STATUS_BAD_PARAM, "a dimension below 1");
    if (object.get<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, d) < 1) return fail(CUDNN_STATUS_BAD_PARAM, "a stride below 1");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(Object& object) {
  for (const Rule& rule : rules) {
    if (rule.descriptor == object.type && rule.required && !object.has(rule.name)) {
      return fail(CUDNN_STATUS_BAD_PARAM, "an attribute is missing");
    }
  }
  for (const auto& [name, values] : object.values) {
    for (const ObjectPointer& inner : values.objects) {
      if (!inner->finalized) return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor that is not finalized");
    }
  }
  switch (object.type) {
    case tensor:
      return finalize_tensor(object);
    case graph:
      return finalize_graph(object);
    case heuristic:
      return finalize_heuristic(object);
    case engine:
      return finalize_engine(object);
    case configuration:
      return finalize_configuration(object);
    case plan:
      return finalize_plan(object);
    case pack:
      if (object.count(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) == object.count(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)) break;
      return fail(CUDNN_STATUS_BAD_PARAM, "the number of pointers differs from the number of ids");
    default:
      break;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t fail(cudnnStatus_t status, const char* reason) {
  last_reason = reason;
  return status;
}

}  // namespace tenon::emulation

using tenon::emulation::fail, tenon::emulation::Object, tenon::emulation::ObjectPointer, tenon::emulation::of, tenon::emulation::rules,
    tenon::emulation::Rule, tenon::emulation::Values;

#pragma GCC visibility push(default)
extern "C" {

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  static thread_local char text[32];
  if (status == CUDNN_STATUS_SUCCESS) return "CUDNN_STATUS_SUCCESS";
  std::snprintf(text, sizeof text, "CUDNN_STATUS %d", static_cast<int>(status));
  return text;
}
void cudnnGetLastErrorString(char* message, std::size_t size) {
  std::snprintf(message, size, "%s", tenon::emulation::last_reason.c_str());
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  auto made = std::make_unique<cudnnContext>();
  if (!made->memory.allocated()) return CUDNN_STATUS_ALLOC_FAILED;
  *handle = made.release();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* handle) {
  *handle = new ObjectPointer(std::make_shared<Object>(type));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  delete static_cast<ObjectPointer*>(handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       std::int64_t count, const void* list) {
  Object& object = *of(handle);
  if (object.finalized) return fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
  if (list == nullptr || count < 1) return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no values");
  if (tenon::emulation::is_factor(name)) {
    if (count != 1 || (type != CUDNN_TYPE_FLOAT && type != CUDNN_TYPE_DOUBLE)) {
      return fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "a factor is one value, f32 or f64");
    }
    const double factor =
        type == CUDNN_TYPE_DOUBLE ? *static_cast<const double*>(list) : static_cast<double>(*static_cast<const float*>(list));
    object.put(name, CUDNN_TYPE_DOUBLE, &factor, 1);
    return CUDNN_STATUS_SUCCESS;
  }
  for (const Rule& rule : rules) {
    if (rule.descriptor != object.type || rule.name != name) continue;
    if (rule.type != type || (rule.count != 0 && rule.count != count)) {
      return fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the type or number of values differs from the attribute's");
    }
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      Values& to = object.values[name];
      const auto* bytes = static_cast<const unsigned char*>(list);
      to = {type, count, {bytes, bytes + static_cast<std::size_t>(count) * tenon::emulation::size_of(type)}, {}};
      return CUDNN_STATUS_SUCCESS;
    }
    Values to{type, count, {}, {}};
    for (std::int64_t i = 0; i < count; ++i) to.objects.push_back(of(static_cast<const cudnnBackendDescriptor_t*>(list)[i]));
    object.values[name] = to;
    return CUDNN_STATUS_SUCCESS;
  }
  return fail(CUDNN_STATUS_BAD_PARAM, "no attribute of this descriptor");
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  Object& object = *of(handle);
  if (object.finalized) return fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
  const cudnnStatus_t status = tenon::emulation::finalize(object);
  object.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t capacity, std::int64_t* count, void* list) {
  const Object& object = *of(handle);
  if (!object.finalized) return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor is not finalized");
  std::vector<ObjectPointer> objects;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    objects = tenon::emulation::results_of(object);
  } else if (object.has(name)) {
    const Values& values = object.values.at(name);
    if (values.type != type) return fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute is of another type");
    objects = values.objects;
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      *count = values.count;
      const auto given = static_cast<std::size_t>(std::min(capacity, values.count)) * tenon::emulation::size_of(type);
      if (given > 0) std::memcpy(list, values.bytes.data(), given);
      return CUDNN_STATUS_SUCCESS;
    }
  } else if (name != CUDNN_ATTR_ENGINECFG_KNOB_CHOICES) {
    return fail(CUDNN_STATUS_BAD_PARAM, "no attribute of this descriptor");
  }
  // Fills in the caller's descriptors.
  *count = capacity == 0 ? static_cast<std::int64_t>(objects.size()) : std::min(capacity, static_cast<std::int64_t>(objects.size()));
  for (std::int64_t i = 0; i < std::min(capacity, *count); ++i) {
    ObjectPointer& to = of(static_cast<cudnnBackendDescriptor_t*>(list)[i]);
    const ObjectPointer& from = objects[static_cast<std::size_t>(i)];
    if (to->type != from->type || to->finalized)
      return fail(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "the output is not an unfinalized descriptor of this type");
    to = from;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  if (handle == nullptr) return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no handle");
  if (!of(plan)->finalized || !of(pack)->finalized) return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan or pointers not finalized");
  return tenon::emulation::execute(handle->stream, of(plan), *of(pack));
}

}  // extern "C"
#pragma GCC visibility pop
