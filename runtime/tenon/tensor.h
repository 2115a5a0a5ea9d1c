// SPDX-License-Identifier: Apache-2.0
// tenon/tensor.h - a strided array of one dtype in host or device memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/shape.h>

namespace tenon {

class Device;
struct DeviceMemory;  // the runtime's own

/// Memory shared by tensors. Created by Tensor and Device; freed with its last tensor.
struct Storage {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::shared_ptr<void> owner;           ///< keeps the memory, and the device it is on, alive
  std::shared_ptr<DeviceMemory> device;  ///< null: plain host memory
};

/// A view of shared storage: copying a Tensor copies the view, never the elements.
///
/// Shapes   any rank up to 8; strides in elements, 0 and negative allowed. More than 2^62 elements
///          or 2^63 bytes are an error.
/// Threads  distinct Tensor objects may be used from distinct threads, even if they share memory.
///          The caller synchronises access to the elements: concurrent access to the same elements
///          is allowed only if all threads read.
class TENON_API Tensor {
 public:
  Tensor() = default;

  /// Uninitialised, dense, in host memory aligned to 64 bytes.
  static Tensor empty(DType dtype, const Shape& shape);
  /// Dense zeros in host memory.
  static Tensor zeros(DType dtype, const Shape& shape);
  /// Dense host memory with `value` in every element. Errors: those of fill.
  static Tensor full(DType dtype, const Shape& shape, double value);
  /// A dense host tensor with these elements. Errors: a count that does not match the shape.
  template <class T>
  static Tensor of(const std::vector<T>& values, const Shape& shape) {
    Tensor t = empty(dtype_of<T>(), shape);
    if (static_cast<std::int64_t>(values.size()) != shape.count()) {
      throw Error("Tensor::of: shape " + shape.str() + " expects " + std::to_string(shape.count()) +
                  " values, got " + std::to_string(values.size()));
    }
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  /// A host tensor of rank 0.
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({value}, {});
  }
  /// A view of caller-owned host memory, dense; `owner` (may be null) is kept alive with the view.
  static Tensor borrow(void* host, DType dtype, const Shape& shape,
                       std::shared_ptr<void> owner = nullptr);

  /// False for a default-constructed tensor, which has no memory and no dtype.
  bool defined() const { return storage_ != nullptr; }
  /// The element type.
  DType dtype() const { return dtype_; }
  /// Dimensions, outermost first.
  const Shape& shape() const { return shape_; }
  /// Distances between neighbours in elements, one per dimension.
  const std::int64_t* strides() const { return strides_.data(); }
  /// Number of elements.
  std::int64_t count() const { return shape_.count(); }
  /// Size of a dense copy in bytes.
  std::int64_t size_bytes() const { return count() * size_of(dtype_); }
  /// True if the elements are contiguous in row-major order.
  bool is_dense() const;
  /// True if the elements can be accessed through a host pointer.
  bool on_host() const;
  /// Address of element (0, ..., 0): a host pointer as an integer, or a device address.
  std::uint64_t address() const { return address_; }

  /// Pointer to the elements. Errors: another dtype, or memory that the host cannot access.
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(checked(dtype_of<T>()));
  }
  /// The same, read-only.
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(checked(dtype_of<T>()));
  }
  /// address() as an unchecked pointer; dereference it only if on_host().
  void* raw() { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }
  /// The same, read-only.
  const void* raw() const {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address_));
  }
  /// The only element of a tensor of any floating or integer dtype, as a double. Errors: count() !=
  /// 1.
  double item() const;

  /// The elements in row-major order, from host or device memory. Errors: another dtype.
  template <class T>
  std::vector<T> to_vector() const {
    require(dtype_of<T>(), "to_vector");
    const Tensor dense = on_host() && is_dense() ? *this : to_host();
    const auto* first = static_cast<const T*>(dense.raw());
    return std::vector<T>(first, first + count());
  }

  // Views on host and device memory, O(1); they share the elements. Negative axes count from the
  // end (-1 is the last). Errors name the view, what was expected and what was given.

  /// The same elements with another shape of the same count. Errors: a strided tensor; use
  /// contiguous() first.
  Tensor reshape(const Shape& shape) const;
  /// Elements begin, begin + step, ... before `end`: 0 <= begin <= end <= size if step > 0; size >
  /// begin >= end >= -1 if step < 0, where end = -1 includes element 0. Indices do not count from
  /// the end.
  Tensor slice(std::int64_t axis, std::int64_t begin, std::int64_t end,
               std::int64_t step = 1) const;
  /// `length` elements starting at `begin`.
  Tensor narrow(std::int64_t axis, std::int64_t begin, std::int64_t length) const;
  /// One element of an axis, which is removed; a negative index counts from the end.
  Tensor select(std::int64_t axis, std::int64_t index) const;
  /// Row `index`: select(0, index).
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  /// Output axis i is input axis permutation[i].
  Tensor permute(const std::vector<std::int64_t>& permutation) const;
  /// Same as permute (NumPy's name).
  Tensor transpose(const std::vector<std::int64_t>& permutation) const;
  /// Exchanges two axes.
  Tensor transpose(std::int64_t axis_a, std::int64_t axis_b) const;
  /// Broadcasts axes of size 1, and new leading axes, with stride 0 (NumPy's broadcast_to).
  Tensor expand(const Shape& shape) const;
  /// Removes the axes of size 1.
  Tensor squeeze() const;
  /// Removes this axis, which must have size 1.
  Tensor squeeze(std::int64_t axis) const;
  /// Inserts an axis of size 1 before `axis`; -1 puts it last.
  Tensor unsqueeze(std::int64_t axis) const;
  /// Reverses the axis, with a negative stride.
  Tensor flip(std::int64_t axis) const;
  /// The elements (i, i + offset) of two axes, as a new last axis; a negative offset selects a
  /// diagonal below the main one.
  Tensor diagonal(std::int64_t offset = 0, std::int64_t axis_a = 0, std::int64_t axis_b = 1) const;

  /// This tensor if it is dense, else a dense copy in the same memory (host or device).
  Tensor contiguous() const;
  /// Copies the elements of `source`, on any device, into this view; the memory may overlap.
  /// Errors: another dtype or shape, or a view that repeats elements.
  void copy_from(const Tensor& source);
  /// Sets every element. Errors: a value that an integer dtype cannot represent; a view that
  /// repeats elements.
  void fill(double value);
  /// A dense copy in host memory (a synchronous download from a device).
  Tensor to_host() const;
  /// A dense copy on the device, or this tensor if it is already there.
  Tensor to(const Device& device) const;
  /// A dense copy of this dtype in the same memory, or this tensor if it has the dtype already.
  /// Numbers are converted as by ops::cast: float to integer truncates and saturates, NaN becomes 0.
  Tensor to(DType dtype) const;

  /// The memory that the view refers to.
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// For the runtime's own use: a dense view at `address`.
  static Tensor make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype,
                     const Shape& shape);
  /// For the runtime's own use: the same with strides in elements, one per dimension. The caller
  /// ensures that they stay in the storage.
  static Tensor make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype,
                     const Shape& shape, const std::int64_t* strides);
  /// "f32(8,10)", as in messages.
  std::string str() const { return std::string(name_of(dtype_)) + shape_.str(); }
  /// The elements in NumPy's format, one row a line: "[[1, 2],\n [3, 4]]". An axis longer than 2 *
  /// edge + 1 shows only its first and last `edge` elements.
  std::string text(std::int64_t edge = 3) const;

 private:
  std::uintptr_t checked(DType expected) const;
  void require(DType expected, const char* what) const;
  std::size_t axis_of(std::int64_t axis, const char* view) const;

  std::shared_ptr<Storage> storage_;
  std::uint64_t address_ = 0;
  Shape shape_;
  std::array<std::int64_t, Shape::max_rank> strides_{};
  DType dtype_ = DType::none;
};

/// True for the same dtype, shape and bits on any device: a NaN equals itself, 0 differs from -0.
TENON_API bool equal(const Tensor& a, const Tensor& b);
/// Same shape, and |a - b| <= absolute + relative * |b| for each element. NaN is never close, an
/// infinity is close only to itself. Errors: complex elements.
TENON_API bool all_close(const Tensor& a, const Tensor& b, double relative = 1e-5,
                         double absolute = 1e-8);

/// Prints text().
TENON_API std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace tenon
