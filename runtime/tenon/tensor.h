// tenon/tensor.h - an array of one dtype in host or device memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/shape.h>

namespace tenon {

class Device;
struct DeviceMemory;  // core/device_bridge.h: how the bytes of device memory are reached

/// Memory that tensors share. Made by Tensor and Device; freed with its last tensor.
struct Storage {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::shared_ptr<void> owner;           ///< keeps the memory, and the device it is on, alive
  std::shared_ptr<DeviceMemory> device;  ///< null: plain host memory
};

/// A view of shared storage: copying a Tensor copies the view, never the elements.
///
/// Shapes   any rank up to 8; strides in elements, 0 and negative allowed. A tensor of more than 2^62 elements, or 2^63 bytes, is an error.
/// Threads  distinct Tensor objects may be used from distinct threads, also when they share memory; the elements are the caller's to
///          guard: no writer beside another writer or a reader of the same ones.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised, dense, in host memory aligned to 64 bytes.
  static Tensor empty(DType dtype, const Shape& shape);
  /// Dense host memory of zeros.
  static Tensor zeros(DType dtype, const Shape& shape);
  /// Dense host memory with `value` in every element; Errors: those of fill.
  static Tensor full(DType dtype, const Shape& shape, double value);
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
  /// A host tensor of rank 0.
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({value}, {});
  }
  /// A view of caller-owned host memory, dense; `owner` (may be null) is kept alive with the view.
  static Tensor borrow(void* host, DType dtype, const Shape& shape, std::shared_ptr<void> owner = nullptr);

  /// False for a default-constructed tensor, which has no memory and no dtype.
  bool defined() const { return storage_ != nullptr; }
  /// Type of the elements.
  DType dtype() const { return dtype_; }
  /// Dimensions, outermost first.
  const Shape& shape() const { return shape_; }
  /// shape().rank() distances between neighbours, in elements.
  const std::int64_t* strides() const { return strides_.data(); }
  /// Elements of the view.
  std::int64_t count() const { return shape_.count(); }
  /// Bytes that a dense copy takes.
  std::int64_t size_bytes() const { return count() * size_of(dtype_); }
  /// True if the elements lie in row-major order without gaps.
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
  /// The same, for reading.
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(checked(dtype_of<T>()));
  }
  /// address() as a pointer, unchecked: only on_host() memory may be read through it.
  void* raw() { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }
  /// The same, for reading.
  const void* raw() const { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address_)); }
  /// The one element of a tensor of any floating or integer dtype, as a double. Errors: count != 1.
  double item() const;

  /// The elements in row-major order, from host or device memory. Errors: another dtype.
  template <class T>
  std::vector<T> to_vector() const {
    require(dtype_of<T>(), "to_vector");
    const Tensor dense = on_host() && is_dense() ? *this : to_host();
    const auto* first = static_cast<const T*>(dense.raw());
    return std::vector<T>(first, first + count());
  }

  // Views, O(1), on host and device memory alike: they share the elements. Axes may count from the end (-1 is the last).
  // Errors name the view, what was wanted and what was got.

  /// The same elements under another shape of the same count. Errors: a strided tensor; contiguous() makes it dense.
  Tensor reshape(const Shape& shape) const;
  /// Elements begin, begin + step, ... short of `end`: 0 <= begin <= end <= size if step > 0; size > begin >= end >= -1 if step < 0, where
  /// end -1 takes element 0 as well. Indices do not count from the end.
  Tensor slice(std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const;
  /// `length` elements from `begin` on.
  Tensor narrow(std::int64_t axis, std::int64_t begin, std::int64_t length) const;
  /// One element of an axis, which disappears; a negative index counts from the end.
  Tensor select(std::int64_t axis, std::int64_t index) const;
  /// Row `index`: select(0, index).
  Tensor operator[](std::int64_t index) const { return select(0, index); }
  /// Output axis i is input axis permutation[i].
  Tensor permute(const std::vector<std::int64_t>& permutation) const;
  /// NumPy's name for permute.
  Tensor transpose(const std::vector<std::int64_t>& permutation) const;
  /// Two axes exchanged.
  Tensor transpose(std::int64_t axis_a, std::int64_t axis_b) const;
  /// Repeats axes of size 1, and new ones in front, by stride 0 (NumPy's broadcast_to).
  Tensor expand(const Shape& shape) const;
  /// Without the axes of size 1.
  Tensor squeeze() const;
  /// Without this axis, which must be of size 1.
  Tensor squeeze(std::int64_t axis) const;
  /// With a new axis of size 1 before `axis`; -1 puts it last.
  Tensor unsqueeze(std::int64_t axis) const;
  /// The axis backwards, by a negative stride.
  Tensor flip(std::int64_t axis) const;
  /// The elements (i, i + offset) of two axes, as a new last axis; a negative offset goes below the diagonal.
  Tensor diagonal(std::int64_t offset = 0, std::int64_t axis_a = 0, std::int64_t axis_b = 1) const;

  /// This tensor if it is dense, else a dense copy in the same memory, host or device.
  Tensor contiguous() const;
  /// Writes the elements of `source`, wherever it lives, into this view; overlapping memory is allowed.
  /// Errors: another dtype or shape, or a view that repeats elements.
  void copy_from(const Tensor& source);
  /// Sets every element. Errors: a value that an integer dtype does not hold; a view that repeats elements.
  void fill(double value);
  /// A dense copy in host memory (a synchronous download from a device).
  Tensor to_host() const;
  /// A dense copy on the device, or this tensor if it is there already.
  Tensor to(const Device& device) const;

  /// The memory behind the view.
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// For makers of storage: a dense view at `address`.
  static Tensor make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype, const Shape& shape);
  /// The same with strides, one per dimension, in elements; that they stay inside the storage is the caller's promise.
  static Tensor make(std::shared_ptr<Storage> storage, std::uint64_t address, DType dtype, const Shape& shape, const std::int64_t* strides);
  /// "f32(8,10)": what messages say.
  std::string str() const { return std::string(name_of(dtype_)) + shape_.str(); }
  /// The elements as NumPy writes them, one row a line: "[[1, 2],\n [3, 4]]". Of an axis longer than 2 * edge + 1 the first and the last
  /// `edge` are shown.
  std::string text(std::int64_t edge = 3) const;

 private:
  std::uintptr_t checked(DType wanted) const;
  void require(DType wanted, const char* what) const;
  std::size_t axis_of(std::int64_t axis, const char* view) const;

  std::shared_ptr<Storage> storage_;
  std::uint64_t address_ = 0;
  Shape shape_;
  std::array<std::int64_t, Shape::max_rank> strides_{};
  DType dtype_ = DType::none;
};

/// Same dtype, shape and bits, wherever the tensors live: a NaN equals itself, 0 differs from -0.
bool equal(const Tensor& a, const Tensor& b);
/// Same shape, and |a - b| <= absolute + relative * |b| for each element. NaN is close to nothing, an infinity to itself.
/// Errors: complex elements.
bool all_close(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);

/// Prints text().
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

}  // namespace tenon
