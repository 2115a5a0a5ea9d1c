// SPDX-License-Identifier: Apache-2.0
// core/dlpack.cpp - import and export of tensors as DLManagedTensor.
#include "core/dlpack.h"

#include <tenon/dlpack.h>

#include <memory>
#include <string>
#include <utility>

#include "core/device_bridge.h"
#include "core/memory_view.h"

namespace tenon {
namespace {

constexpr std::uint8_t code_bool = 6;  // kDLBool came after DLPack 0.6

struct Row {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr Row rows[] = {
    {DType::f16, kDLFloat, 16},   {DType::f32, kDLFloat, 32},     {DType::f64, kDLFloat, 64},     {DType::bf16, kDLBfloat, 16},
    {DType::i8, kDLInt, 8},       {DType::i16, kDLInt, 16},       {DType::i32, kDLInt, 32},       {DType::i64, kDLInt, 64},
    {DType::u8, kDLUInt, 8},      {DType::u16, kDLUInt, 16},      {DType::u32, kDLUInt, 32},      {DType::u64, kDLUInt, 64},
    {DType::c64, kDLComplex, 64}, {DType::c128, kDLComplex, 128}, {DType::boolean, code_bool, 8},
};

std::string name_of_type(const DLDataType& type) {
  static constexpr const char* words[] = {"int", "uint", "float", "opaque handle", "bfloat", "complex", "bool"};
  std::string text = type.code < std::size(words) ? words[type.code] : "type code " + std::to_string(type.code);
  text += ' ' + std::to_string(type.bits) + " bits";
  return type.lanes == 1 ? text : text + " x " + std::to_string(type.lanes) + " lanes";
}

DType dtype_of_type(const DLDataType& type) {
  for (const Row& row : rows) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  throw Error(Status::unsupported,
              "from_dlpack: expected float 16 to 64, bfloat 16, int and uint 8 to 64, complex 64 or 128, or bool 8 bits, "
              "of one lane; got " +
                  name_of_type(type));
}

std::string name_of_device(const DLDevice& device) {
  const auto type = static_cast<int>(device.device_type);
  const char* word = type == kDLCUDA          ? "CUDA device"
                     : type == kDLCUDAManaged ? "CUDA managed memory, device"
                     : type == kDLROCM        ? "ROCm device"
                     : type == kDLOpenCL      ? "OpenCL device"
                     : type == kDLVulkan      ? "Vulkan device"
                     : type == kDLMetal       ? "Metal device"
                                              : nullptr;
  return (word != nullptr ? std::string(word) : "device type " + std::to_string(type)) + ' ' + std::to_string(device.device_id);
}

bool readable_by_host(const DLDevice& device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost;
}

/// The exported struct and the tensor that it keeps alive.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
};

template <class Managed>
Managed* export_tensor(const Tensor& tensor) {
  const DlpackDevice device = dlpack_device_of(tensor);
  const Row* type = nullptr;
  for (const Row& row : rows) {
    if (row.dtype == tensor.dtype()) type = &row;
  }
  auto exported = std::make_unique<Exported<Managed>>();
  exported->tensor = tensor;
  Tensor& view = exported->tensor;
  DLTensor& out = exported->managed.dl_tensor;
  out.data = view.raw();
  out.device = {static_cast<DLDeviceType>(device.type), device.id};
  out.ndim = static_cast<std::int32_t>(view.shape().rank());
  out.dtype = {type->code, type->bits, 1};
  // DLPack lacks const; receivers only read these.
  out.shape = const_cast<std::int64_t*>(view.shape().data());
  out.strides = const_cast<std::int64_t*>(view.strides());
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  return &exported.release()->managed;
}

}  // namespace

const DLTensor& dlpack_tensor(const DLManagedTensor* managed) {
  if (managed == nullptr) throw Error("from_dlpack: expected a DLManagedTensor, got null");
  return managed->dl_tensor;
}

const DLTensor& dlpack_tensor(const DLManagedTensorVersioned* managed) {
  if (managed == nullptr) throw Error("from_dlpack: expected a DLManagedTensorVersioned, got null");
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    throw Error(Status::incompatible, "from_dlpack: expected DLPack 1.x, got " + std::to_string(managed->version.major) + "." +
                                          std::to_string(managed->version.minor) + "; ask the exporter for max_version (1, 0)");
  }
  return managed->dl_tensor;
}

Tensor dlpack_view(const DLTensor& from, std::shared_ptr<DeviceMemory> memory) {
  if (memory == nullptr && !readable_by_host(from.device)) {
    throw Error(Status::unsupported, "from_dlpack: expected memory that the host can read, got that of " + name_of_device(from.device) +
                                         "; copy it to the host first");
  }
  const DType dtype = dtype_of_type(from.dtype);
  if (from.ndim < 0 || from.ndim > static_cast<std::int32_t>(Shape::max_rank) || (from.ndim > 0 && from.shape == nullptr)) {
    throw Error("from_dlpack: expected a shape of up to 8 dimensions, got " + std::to_string(from.ndim) +
                (from.ndim > 0 && from.shape == nullptr ? " and no sizes" : ""));
  }
  const Shape shape(std::span<const std::int64_t>(from.shape, static_cast<std::size_t>(from.ndim)));
  // A null pointer stays one, whatever the offset.
  const auto data = reinterpret_cast<std::uintptr_t>(from.data);
  const std::uint64_t address = data == 0 ? 0 : data + from.byte_offset;
  Tensor tensor =
      view_of_memory("from_dlpack", address, "byte_offset " + std::to_string(from.byte_offset) + " in memory that makes them misaligned",
                     dtype, shape, from.strides);
  tensor.storage()->device = std::move(memory);
  return tensor;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  Tensor tensor = dlpack_view(dlpack_tensor(managed));
  tensor.storage()->owner = dlpack_owner(managed);
  return tensor;
}

ImportedTensor from_dlpack(DLManagedTensorVersioned* managed) {
  ImportedTensor imported{dlpack_view(dlpack_tensor(managed)), is_read_only(managed)};
  imported.tensor.storage()->owner = dlpack_owner(managed);
  return imported;
}

DlpackDevice dlpack_device_of(const Tensor& tensor) {
  if (!tensor.defined()) throw Error("to_dlpack: got an undefined tensor");
  if (tensor.on_host()) return {kDLCPU, 0};
  if (const auto place = tensor.storage()->device->dlpack_device()) return *place;
  throw Error(Status::unsupported,
              "to_dlpack: expected memory that the host can read, or that of a device whose backend says where it is in "
              "DLPack, got device memory " +
                  tensor.str() + "; to_host() copies it");
}

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  return export_tensor<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, bool read_only) {
  DLManagedTensorVersioned* const managed = export_tensor<DLManagedTensorVersioned>(tensor);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return managed;
}

}  // namespace tenon
