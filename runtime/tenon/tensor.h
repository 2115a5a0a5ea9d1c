// tenon/tensor.h - an array of one dtype in host or device memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/shape.h>

namespace tenon {

class Device;
struct DeviceMemory;  // core/device_bridge.h: how the bytes of device memory are reached

/// Memory that tensors share. Made by Tensor::empty and Device; freed with its last tensor.
struct Storage {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::shared_ptr<void> owner;           ///< keeps the memory, and the device it is on, alive
  std::shared_ptr<DeviceMemory> device;  ///< null: plain host memory
};

/// A view of shared storage: copying a Tensor copies the view, never the elements.
///
/// Shapes   any rank up to 8; strides in elements, 0 and negative allowed.
/// Threads  distinct Tensor objects may be used from distinct threads; elements are the caller's to guard.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised, dense, in host memory aligned to 64 bytes.
  static Tensor empty(DType dtype, const Shape& shape);
  static Tensor zeros(DType dtype, const Shape& shape);
  /// A dense host tensor with these elements. Errors: a count that differs from the shape's.
  template <class T>
  static Tensor of(const std::vector<T>& values, const Shape& shape) {
    Tensor t = empty(dtype_of<T>(), shape);
    if (static_cast<std::int64_t>(values.size()) != shape.count()) {
      throw Error("Tensor::of: shape " + shape.str() + " wants " + std::to_string(shape.count()) + " values, got " +
                  std::to_string(values.size()));
    }
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({value}, {});
  }
  /// A view of caller-owned host memory, dense; `owner` (may be null) is kept alive with the view.
  static Tensor borrow(void* host, DType dtype, const Shape& shape, std::shared_ptr<void> owner = nullptr);

  bool defined() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const std::int64_t* strides() const { return strides_.data(); }
  std::int64_t count() const { return shape_.count(); }
  std::int64_t size_bytes() const { return count() * size_of(dtype_); }
  bool is_dense() const;
  /// True if the elements may be read through a host pointer.
  bool on_host() const;
  /// Address of element (0, ..., 0): a host pointer as an integer, or a device address.
  std::uint64_t address() const { return address_; }

  /// Elements in host memory. Errors: another dtype, or memory the host cannot address.
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(checked(dtype_of<T>()));
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(checked(dtype_of<T>()));
  }
  void* raw() { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }
  const void* raw() const { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address_)); }
  /// The one element of a tensor of any floating or integer dtype, as a double. Errors: count != 1.
  double item() const;

  /// Views, O(1). Errors name the view, what was wanted and what was got.
  Tensor reshape(const Shape& shape) const;  ///< dense tensors only
  Tensor slice(std::int64_t axis, std::int64_t begin, std::int64_t end) const;
  Tensor transpose(const std::vector<std::int64_t>& permutation) const;

  /// A dense copy in host memory (a synchronous download from a device).
  Tensor to_host() const;
  /// A dense copy on the device, or this tensor if it is there already.
  Tensor to(const Device& device) const;

  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// For makers of storage: a dense view at `address`.
  static Tensor make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype, const Shape& shape);
  /// "f32(8,10)".
  std::string str() const { return std::string(name_of(dtype_)) + shape_.str(); }

 private:
  std::uintptr_t checked(DType wanted) const;

  std::shared_ptr<Storage> storage_;
  std::uint64_t address_ = 0;
  Shape shape_;
  std::array<std::int64_t, Shape::max_rank> strides_{};
  DType dtype_ = DType::none;
};

}  // namespace tenon
