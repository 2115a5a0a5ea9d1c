// SPDX-License-Identifier: Apache-2.0
// core/dlpack.cpp - import and export of tensors as DLManagedTensor.
#include "core/dlpack.h"

#include <dlpack/dlpack.h>
#include <tenon/dlpack.h>

#include <limits>

#include "core/strided.h"

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

/// True if the distance from the lowest to the highest element in bytes fits 63 bits. Always true for a shape without elements.
bool is_addressable(const Shape& shape, const std::int64_t* strides, std::int64_t size) {
  std::int64_t reach = size;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    std::int64_t way = strides[i];
    if (way == std::numeric_limits<std::int64_t>::min() || __builtin_mul_overflow(way < 0 ? -way : way, shape[i] - 1, &way) ||
        __builtin_mul_overflow(way, size, &way) || __builtin_add_overflow(reach, way, &reach)) {
      return false;
    }
  }
  return true;
}

/// The exported struct and the tensor that it keeps alive.
struct Exported {
  DLManagedTensor managed{};
  Tensor tensor;
};

}  // namespace

Tensor dlpack_view(const DLManagedTensor* managed) {
  if (managed == nullptr) throw Error("from_dlpack: expected a DLManagedTensor, got null");
  const DLTensor& from = managed->dl_tensor;
  if (!readable_by_host(from.device)) {
    throw Error(Status::unsupported, "from_dlpack: expected memory that the host can read, got that of " + name_of_device(from.device) +
                                         "; copy it to the host first");
  }
  const DType dtype = dtype_of_type(from.dtype);
  if (from.ndim < 0 || from.ndim > static_cast<std::int32_t>(Shape::max_rank) || (from.ndim > 0 && from.shape == nullptr)) {
    throw Error("from_dlpack: expected a shape of up to 8 dimensions, got " + std::to_string(from.ndim) +
                (from.ndim > 0 && from.shape == nullptr ? " and no sizes" : ""));
  }
  const Shape shape(std::span<const std::int64_t>(from.shape, static_cast<std::size_t>(from.ndim)));
  const auto data = reinterpret_cast<std::uintptr_t>(from.data);
  if (from.data == nullptr && shape.count() > 0) throw Error("from_dlpack: expected memory for " + shape.str() + ", got a null pointer");
  const std::uint64_t address = data + from.byte_offset;
  const std::int64_t size = size_of(dtype);
  // Complex numbers have the alignment of their parts.
  const std::int64_t aligned = dtype == DType::c64 || dtype == DType::c128 ? size / 2 : size;
  if (shape.count() > 0 && address % static_cast<std::uint64_t>(aligned) != 0) {
    throw Error(std::string("from_dlpack: expected ") + name_of(dtype) + " elements aligned to " + std::to_string(aligned) +
                " bytes, got byte_offset " + std::to_string(from.byte_offset) + " in memory that makes them misaligned");
  }
  const auto dense = dense_strides(shape);
  const std::int64_t* strides = from.strides != nullptr ? from.strides : dense.data();
  if (shape.count() > 0 && !is_addressable(shape, strides, size)) {
    throw Error("from_dlpack: expected strides that 64 bits can address, got others for " + shape.str());
  }
  auto storage = std::make_shared<Storage>();
  Tensor tensor = Tensor::make(storage, address, dtype, shape, strides);
  if (shape.count() > 0) {
    const Reach reach = reach_of(shape, strides);
    storage->address = address + static_cast<std::uint64_t>(reach.lowest * size);
    storage->size_bytes = static_cast<std::uint64_t>(reach.count() * size);
  }
  return tensor;
}

std::shared_ptr<void> dlpack_owner(DLManagedTensor* managed) {
  return {managed, [](DLManagedTensor* owned) {
            if (owned->deleter != nullptr) owned->deleter(owned);
          }};
}

Tensor from_dlpack(DLManagedTensor* managed) {
  Tensor tensor = dlpack_view(managed);
  tensor.storage()->owner = dlpack_owner(managed);
  return tensor;
}

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  if (!tensor.defined()) throw Error("to_dlpack: got an undefined tensor");
  if (!tensor.on_host()) {
    throw Error(Status::unsupported,
                "to_dlpack: expected memory that the host can read, got device memory " + tensor.str() + "; to_host() copies it");
  }
  const Row* type = nullptr;
  for (const Row& row : rows) {
    if (row.dtype == tensor.dtype()) type = &row;
  }
  auto exported = std::make_unique<Exported>();
  exported->tensor = tensor;
  Tensor& view = exported->tensor;
  DLTensor& out = exported->managed.dl_tensor;
  out.data = view.raw();
  out.device = {kDLCPU, 0};
  out.ndim = static_cast<std::int32_t>(view.shape().rank());
  out.dtype = {type->code, type->bits, 1};
  // DLPack lacks const; receivers only read these.
  out.shape = const_cast<std::int64_t*>(view.shape().data());
  out.strides = const_cast<std::int64_t*>(view.strides());
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  return &exported.release()->managed;
}

}  // namespace tenon
