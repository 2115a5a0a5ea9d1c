// SPDX-License-Identifier: Apache-2.0
// Tensors of the C API.
#include <memory>

#include "c/object.h"
#include "core/memory_view.h"
#include "core/nonzero.h"
#include "exec/device_state.h"

using namespace tenon;
using namespace tenon::c;

namespace {

Tensor empty_on(const std::optional<Device>& device, tenon_dtype dtype, std::uint32_t rank, const std::int64_t* shape) {
  const DType type = c::dtype_of(dtype);
  const Shape dims = shape_of(rank, shape);
  return device ? device->empty(type, dims) : Tensor::empty(type, dims);
}

/// A view of memory that belongs to someone else, kept alive by `owner`.
Tensor view_of(const char* function, const void* data, tenon_dtype dtype, std::uint32_t rank, const std::int64_t* shape,
               const std::int64_t* strides, std::shared_ptr<void> owner) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
  Tensor view =
      view_of_memory(function, address, "the address " + std::to_string(address), c::dtype_of(dtype), shape_of(rank, shape), strides);
  view.storage()->owner = std::move(owner);
  return view;
}

/// The memory of the caller, with its function that ends it.
struct Borrowed {
  void (*release)(void* user);
  void* user;
  ~Borrowed() {
    if (release != nullptr) release(user);
  }
};

/// A view of a tensor, or another result that shares its memory.
template <class MakeView>
TenonError* make_view(const char* function, const TenonTensor* tensor, TenonTensor** out_tensor, const MakeView& make) {
  return guard(function, [&] {
    required(out_tensor, "out_tensor");
    const TenonTensor& from = get(tensor, "tensor");
    const Tensor made = make(from.value);
    const bool shared = made.storage() == from.value.storage();
    *out_tensor = new TenonTensor(made, shared && from.read_only);
  });
}

}  // namespace

TenonError* tenon_tensor_empty(const TenonDevice* device, tenon_dtype dtype, uint32_t rank, const int64_t* shape,
                               TenonTensor** out_tensor) {
  return guard(__func__, [&] {
    required(out_tensor, "out_tensor");
    *out_tensor = new TenonTensor(empty_on(optional_device(device), dtype, rank, shape));
  });
}

TenonError* tenon_tensor_nonzero(const TenonTensor* tensor, TenonTensor** out_places) {
  return guard(__func__, [&] {
    required(out_places, "out_places");
    *out_places = new TenonTensor(nonzero(get(tensor, "tensor").value));
  });
}

TenonError* tenon_tensor_full(const TenonDevice* device, tenon_dtype dtype, uint32_t rank, const int64_t* shape, double value,
                              TenonTensor** out_tensor) {
  return guard(__func__, [&] {
    required(out_tensor, "out_tensor");
    Tensor tensor = empty_on(optional_device(device), dtype, rank, shape);
    tensor.fill(value);
    *out_tensor = new TenonTensor(std::move(tensor));
  });
}

TenonError* tenon_tensor_copy_of(const void* data, tenon_dtype dtype, uint32_t rank, const int64_t* shape, const int64_t* strides,
                                 TenonTensor** out_tensor) {
  const char* const function = __func__;
  return guard(function, [&] {
    required(out_tensor, "out_tensor");
    const Tensor from = view_of(function, data, dtype, rank, shape, strides, nullptr);
    Tensor copy = Tensor::empty(from.dtype(), from.shape());
    copy.copy_from(from);
    *out_tensor = new TenonTensor(std::move(copy));
  });
}

TenonError* tenon_tensor_borrow(void* data, tenon_dtype dtype, uint32_t rank, const int64_t* shape, const int64_t* strides, uint32_t flags,
                                void (*release)(void* user), void* user, TenonTensor** out_tensor) {
  const char* const function = __func__;
  return guard(function, [&] {
    required(out_tensor, "out_tensor");
    if ((flags & ~std::uint32_t{TENON_TENSOR_READ_ONLY}) != 0)
      throw BadArgument("flags: expected TENON_TENSOR_READ_ONLY or 0, got " + std::to_string(flags));
    auto owner = std::make_shared<Borrowed>(Borrowed{nullptr, user});
    auto tensor =
        std::make_unique<TenonTensor>(view_of(function, data, dtype, rank, shape, strides, owner), (flags & TENON_TENSOR_READ_ONLY) != 0);
    owner->release = release;  // from here on nothing fails
    *out_tensor = tensor.release();
  });
}

TenonError* tenon_tensor_info(const TenonTensor* tensor, TenonTensorInfo* out_info) {
  return guard(__func__, [&] {
    const TenonTensor& object = get(tensor, "tensor");
    const Tensor& value = object.value;
    TenonTensorInfo info{};
    info.dtype = static_cast<tenon_dtype>(value.dtype());
    info.rank = static_cast<std::uint32_t>(value.shape().rank());
    info.flags = object.read_only ? TENON_TENSOR_READ_ONLY : 0;
    info.is_dense = value.is_dense() ? 1 : 0;
    info.is_on_host = value.on_host() ? 1 : 0;
    info.address = value.address();
    info.element_count = static_cast<std::uint64_t>(value.count());
    info.size_bytes = static_cast<std::uint64_t>(value.size_bytes());
    for (std::size_t i = 0; i < value.shape().rank(); ++i) {
      info.shape[i] = value.shape()[i];
      info.strides[i] = value.strides()[i];
    }
    fill_info(out_info, info, "out_info");
  });
}

TenonError* tenon_tensor_device(const TenonTensor* tensor, TenonDevice** out_device) {
  return guard(__func__, [&] {
    required(out_device, "out_device");
    const auto state = std::dynamic_pointer_cast<exec::DeviceState>(get(tensor, "tensor").value.storage()->device);
    *out_device = state == nullptr ? nullptr : new TenonDevice(Device(state));
  });
}

TenonError* tenon_tensor_data(const TenonTensor* tensor, const void** out_data) {
  return guard(__func__, [&] {
    required(out_data, "out_data");
    const Tensor& value = get(tensor, "tensor").value;
    if (!value.on_host())
      throw Error("tenon_tensor_data: expected memory that the host can access, got " + value.str() +
                  " on a device; copy it with tenon_tensor_to_device");
    *out_data = value.raw();
  });
}

TenonError* tenon_tensor_mutable_data(const TenonTensor* tensor, void** out_data) {
  return guard(__func__, [&] {
    required(out_data, "out_data");
    Tensor& value = writable(tensor, "tensor");
    if (!value.on_host())
      throw Error("tenon_tensor_mutable_data: expected memory that the host can access, got " + value.str() +
                  " on a device; write to it with tenon_tensor_assign");
    *out_data = value.raw();
  });
}

TenonError* tenon_tensor_read(const TenonTensor* tensor, void* out_data, uint64_t size_bytes) {
  return guard(__func__, [&] {
    const Tensor& value = get(tensor, "tensor").value;
    if (size_bytes != static_cast<std::uint64_t>(value.size_bytes())) {
      throw BadArgument("size_bytes: expected " + std::to_string(value.size_bytes()) + " for " + value.str() + ", got " +
                        std::to_string(size_bytes));
    }
    if (size_bytes == 0) return;
    Tensor::borrow(required(out_data, "out_data"), value.dtype(), value.shape()).copy_from(value);
  });
}

TenonError* tenon_tensor_assign(const TenonTensor* tensor, const TenonTensor* source) {
  return guard(__func__, [&] { writable(tensor, "tensor").copy_from(get(source, "source").value); });
}

TenonError* tenon_tensor_fill(const TenonTensor* tensor, double value) {
  return guard(__func__, [&] { writable(tensor, "tensor").fill(value); });
}

TenonError* tenon_tensor_to_device(const TenonTensor* tensor, const TenonDevice* device, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) {
    if (device == nullptr) return value.on_host() ? value.contiguous() : value.to_host();
    return value.to(get(device, "device").value);
  });
}

TenonError* tenon_tensor_to_dtype(const TenonTensor* tensor, tenon_dtype dtype, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.to(c::dtype_of(dtype)); });
}

TenonError* tenon_tensor_reshape(const TenonTensor* tensor, uint32_t rank, const int64_t* shape, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.reshape(shape_of(rank, shape)); });
}

TenonError* tenon_tensor_slice(const TenonTensor* tensor, int64_t axis, int64_t begin, int64_t end, int64_t step,
                               TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.slice(axis, begin, end, step); });
}

TenonError* tenon_tensor_select(const TenonTensor* tensor, int64_t axis, int64_t index, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.select(axis, index); });
}

TenonError* tenon_tensor_permute(const TenonTensor* tensor, uint32_t rank, const int64_t* permutation, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) {
    const auto axes = array(permutation, rank, "permutation");
    return value.permute(std::vector<std::int64_t>(axes.begin(), axes.end()));
  });
}

TenonError* tenon_tensor_expand(const TenonTensor* tensor, uint32_t rank, const int64_t* shape, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.expand(shape_of(rank, shape)); });
}

TenonError* tenon_tensor_unsqueeze(const TenonTensor* tensor, int64_t axis, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.unsqueeze(axis); });
}

TenonError* tenon_tensor_contiguous(const TenonTensor* tensor, TenonTensor** out_tensor) {
  return make_view(__func__, tensor, out_tensor, [&](const Tensor& value) { return value.contiguous(); });
}

TenonError* tenon_tensor_text(const TenonTensor* tensor, int64_t edge, char** out_text) {
  return guard(__func__, [&] {
    required(out_text, "out_text");
    *out_text = new_text(get(tensor, "tensor").value.text(edge));
  });
}

TenonError* tenon_tensor_equal(const TenonTensor* a, const TenonTensor* b, uint32_t* out_equal) {
  return guard(__func__, [&] {
    required(out_equal, "out_equal");
    *out_equal = equal(get(a, "a").value, get(b, "b").value) ? 1 : 0;
  });
}
