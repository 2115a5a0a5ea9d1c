// SPDX-License-Identifier: Apache-2.0
// core/tensor.cpp - storage of tensors and copies of elements. Tensor::to(Device) is in exec/.
#include <tenon/tensor.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "core/device_bridge.h"
#include "core/element.h"
#include "core/host_memory.h"
#include "core/strided.h"

namespace tenon {
namespace {

constexpr std::uint64_t alignment = 64;

std::int64_t bytes_of(DType dtype, const Shape& shape, const char* where) {
  const std::int64_t size = size_of(dtype);
  if (size == 0) throw Error(std::string(where) + ": expected a dtype, got none");
  if (shape.count() > std::numeric_limits<std::int64_t>::max() / size) {
    throw Error(Status::out_of_memory, std::string(where) + ": " + name_of(dtype) + shape.str() + " needs more bytes than any memory has");
  }
  return shape.count() * size;
}

std::byte* host_pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

/// The elements of a view on a device as a dense block in host memory.
Tensor downloaded(const Tensor& view) {
  Tensor copy = Tensor::empty(view.dtype(), view.shape());
  if (view.count() == 0) return copy;
  DeviceMemory& device = *view.storage()->device;
  if (view.is_dense()) {
    device.download(view.address(), copy.raw(), static_cast<std::uint64_t>(view.size_bytes()));
    return copy;
  }
  // Download the address range that the view covers, then select its elements.
  const std::int64_t size = size_of(view.dtype());
  const Reach reach = reach_of(view.shape(), view.strides());
  const Tensor span = Tensor::empty(view.dtype(), {reach.count()});
  device.download(view.address() + static_cast<std::uint64_t>(reach.lowest * size), host_pointer(span.address()),
                  static_cast<std::uint64_t>(span.size_bytes()));
  copy_elements(host_pointer(copy.address()), copy.strides(), host_pointer(span.address()) - reach.lowest * size, view.strides(),
                view.shape(), size);
  return copy;
}

/// True if the two views may touch the same bytes.
bool overlap(const Tensor& a, const Tensor& b) {
  const auto range = [](const Tensor& t) {
    const std::int64_t size = size_of(t.dtype());
    const Reach reach = reach_of(t.shape(), t.strides());
    const std::uint64_t first = t.address() + static_cast<std::uint64_t>(reach.lowest * size);
    return std::pair(first, first + static_cast<std::uint64_t>(reach.count() * size));
  };
  const auto x = range(a), y = range(b);
  return x.first < y.second && y.first < x.second;
}

/// Errors: a view that repeats an element, which cannot be written.
void need_writable(const Tensor& view, const char* what) {
  if (!view.defined()) throw Error(std::string(what) + ": got an undefined tensor");
  for (std::size_t i = 0; i < view.shape().rank(); ++i) {
    if (view.strides()[i] == 0 && view.shape()[i] > 1) {
      throw Error(std::string(what) + ": expected a tensor without repeated elements, got " + view.str() +
                  " which repeats them along axis " + std::to_string(i) + "; contiguous() makes a copy");
    }
  }
}

}  // namespace

Tensor Tensor::empty(DType dtype, const Shape& shape) {
  const std::int64_t bytes = bytes_of(dtype, shape, "Tensor::empty");
  // An empty tensor has an address too, so that kernels never see a null pointer.
  void* memory = allocate_host(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1)), alignment, HostPages::normal);
  if (!memory) {
    throw Error(Status::out_of_memory, std::string("Tensor::empty: no host memory for ") + name_of(dtype) + shape.str() + ", " +
                                           std::to_string(bytes) + " bytes requested; use a smaller batch or model");
  }
  std::shared_ptr<void> owner(memory, free_host);
  return borrow(memory, dtype, shape, std::move(owner));
}

Tensor Tensor::zeros(DType dtype, const Shape& shape) {
  Tensor t = empty(dtype, shape);
  std::memset(t.raw(), 0, static_cast<std::size_t>(t.size_bytes()));
  return t;
}

Tensor Tensor::full(DType dtype, const Shape& shape, double value) {
  Tensor t = empty(dtype, shape);
  t.fill(value);
  return t;
}

Tensor Tensor::borrow(void* host, DType dtype, const Shape& shape, std::shared_ptr<void> owner) {
  const std::int64_t bytes = bytes_of(dtype, shape, "Tensor::borrow");
  if (!host && bytes > 0)
    throw Error(std::string("Tensor::borrow: expected memory for ") + name_of(dtype) + shape.str() + ", got a null pointer");
  auto storage = std::make_shared<Storage>();
  storage->address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(host));
  storage->size_bytes = static_cast<std::uint64_t>(bytes);
  storage->owner = std::move(owner);
  const std::uint64_t address = storage->address;
  return make(std::move(storage), address, dtype, shape);
}

Tensor Tensor::make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype, const Shape& shape) {
  bytes_of(dtype, shape, "Tensor::make");
  Tensor t;
  t.storage_ = std::move(storage);
  t.address_ = address;
  t.shape_ = shape;
  t.strides_ = dense_strides(shape);
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype, const Shape& shape, const std::int64_t* strides) {
  Tensor t = make(std::move(storage), address, dtype, shape);
  std::copy_n(strides, shape.rank(), t.strides_.begin());
  return t;
}

bool Tensor::is_dense() const {
  if (count() == 0) return true;
  const auto dense = dense_strides(shape_);
  for (std::size_t i = 0; i < shape_.rank(); ++i) {
    if (shape_[i] != 1 && strides_[i] != dense[i]) return false;  // the stride of an axis of size 1 is never used
  }
  return true;
}

bool Tensor::on_host() const {
  return defined() && (!storage_->device || storage_->device->host_addressable());
}

void Tensor::require(DType expected, const char* what) const {
  if (!defined()) throw Error(std::string("Tensor::") + what + ": expected " + name_of(expected) + ", got an undefined tensor");
  if (dtype_ != expected) throw Error(std::string("Tensor::") + what + ": expected " + name_of(expected) + ", got " + str());
}

std::uintptr_t Tensor::checked(DType expected) const {
  require(expected, "data");
  if (!on_host()) throw Error("Tensor::data: " + str() + " is in device memory; call to_host() first");
  return static_cast<std::uintptr_t>(address_);
}

double Tensor::item() const {
  if (!defined()) throw Error("Tensor::item: expected one element, got an undefined tensor");
  if (count() != 1) throw Error("Tensor::item: expected one element, got " + str());
  if (on_host()) return element_as_double(raw(), dtype_, "Tensor::item");
  std::array<std::byte, 16> element;
  storage_->device->download(address_, element.data(), static_cast<std::uint64_t>(size_of(dtype_)));
  return element_as_double(element.data(), dtype_, "Tensor::item");
}

Tensor Tensor::contiguous() const {
  if (!defined()) throw Error("Tensor::contiguous: got an undefined tensor");
  if (is_dense()) return *this;
  if (on_host() && !storage_->device) return to_host();
  Tensor copy = make(storage_->device->allocate(static_cast<std::uint64_t>(size_bytes())), 0, dtype_, shape_);
  copy.address_ = copy.storage_->address;
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& source) {
  need_writable(*this, "Tensor::copy_from");
  if (!source.defined() || source.dtype_ != dtype_ || !(source.shape_ == shape_)) {
    throw Error("Tensor::copy_from: expected " + str() + ", got " + (source.defined() ? source.str() : "an undefined tensor"));
  }
  if (count() == 0) return;
  const std::int64_t size = size_of(dtype_);
  const auto bytes = static_cast<std::uint64_t>(size_bytes());
  if (on_host()) {
    if (!source.on_host() && is_dense() && source.is_dense()) return source.storage_->device->download(source.address_, raw(), bytes);
    const Tensor from = source.on_host() && !overlap(*this, source) ? source : source.to_host();
    return copy_elements(host_pointer(address_), strides(), host_pointer(from.address_), from.strides(), shape_, size);
  }
  DeviceMemory& device = *storage_->device;
  if (is_dense()) {
    const bool disjoint = source.storage_->device == storage_->device && source.is_dense() && !overlap(*this, source);
    if (disjoint) return device.move(address_, source.address_, bytes);
    const Tensor from = source.on_host() && source.is_dense() ? source : source.to_host();
    return device.upload(address_, from.raw(), bytes);
  }
  // Download the address range that the view covers, change it and upload it, which keeps the elements between.
  const Tensor from = source.on_host() ? source : source.to_host();
  const Reach reach = reach_of(shape_, strides());
  const Tensor span = empty(dtype_, {reach.count()});
  const std::uint64_t first = address_ + static_cast<std::uint64_t>(reach.lowest * size);
  device.download(first, host_pointer(span.address()), static_cast<std::uint64_t>(span.size_bytes()));
  copy_elements(host_pointer(span.address()) - reach.lowest * size, strides(), host_pointer(from.address_), from.strides(), shape_, size);
  device.upload(first, span.raw(), static_cast<std::uint64_t>(span.size_bytes()));
}

void Tensor::fill(double value) {
  need_writable(*this, "Tensor::fill");
  Tensor one = empty(dtype_, {});
  write_element(one.raw(), dtype_, value, "Tensor::fill");
  const std::span bytes(static_cast<const std::uint8_t*>(one.raw()), static_cast<std::size_t>(one.size_bytes()));
  const bool equal_bytes = std::all_of(bytes.begin(), bytes.end(), [&](std::uint8_t byte) { return byte == bytes[0]; });
  if (equal_bytes && storage_->device != nullptr && is_dense()) {
    storage_->device->fill(address_, static_cast<std::uint64_t>(size_bytes()), bytes[0]);
  } else {
    copy_from(one.expand(shape_));
  }
}

Tensor Tensor::to_host() const {
  if (!defined()) throw Error("Tensor::to_host: got an undefined tensor");
  // Host-accessible device memory goes through the device too if possible, so that the copy is counted.
  if (storage_->device && (is_dense() || !on_host())) return downloaded(*this);
  Tensor copy = empty(dtype_, shape_);
  copy_elements(host_pointer(copy.address_), copy.strides(), host_pointer(address_), strides(), shape_, size_of(dtype_));
  return copy;
}

}  // namespace tenon
