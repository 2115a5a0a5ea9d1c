// core/tensor.cpp - tensors in host memory, views, and the way back from a device. Tensor::to(Device) is exec's.
#include <tenon/tensor.h>

#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "core/device_bridge.h"

namespace tenon {
namespace {

constexpr std::align_val_t alignment{64};

std::int64_t bytes_of(DType dtype, const Shape& shape, const char* where) {
  const std::int64_t size = size_of(dtype);
  if (size == 0) throw Error(std::string(where) + ": wanted a dtype, got none");
  if (shape.count() > std::numeric_limits<std::int64_t>::max() / size) {
    throw Error(Status::out_of_memory, std::string(where) + ": " + name_of(dtype) + shape.str() + " needs more bytes than any memory has");
  }
  return shape.count() * size;
}

std::byte* host_pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

/// The innermost run of a strided copy; a size known to the compiler makes each element one move.
template <std::size_t Size>
void copy_run(std::byte* to, const std::byte* from, std::int64_t count, std::int64_t stride_bytes) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * static_cast<std::int64_t>(Size), from + i * stride_bytes, Size);
}

/// Elements of any strides, in row-major order, to dense memory.
void copy_strided(std::byte* to, const std::byte* from, const Shape& shape, const std::int64_t* strides, std::int64_t size) {
  const std::size_t rank = shape.rank();
  if (shape.count() == 0) return;
  const std::int64_t run = rank == 0 ? 1 : shape[rank - 1];
  const std::int64_t run_stride = rank == 0 ? 0 : strides[rank - 1] * size;
  std::array<std::int64_t, Shape::max_rank> index{};
  std::int64_t row = 0;  // an offset, since the odometer passes through positions outside the view
  for (std::int64_t left = shape.count() / run; left > 0; --left) {
    switch (size) {
      case 1:
        copy_run<1>(to, from + row, run, run_stride);
        break;
      case 2:
        copy_run<2>(to, from + row, run, run_stride);
        break;
      case 4:
        copy_run<4>(to, from + row, run, run_stride);
        break;
      case 8:
        copy_run<8>(to, from + row, run, run_stride);
        break;
      default:
        copy_run<16>(to, from + row, run, run_stride);
        break;
    }
    to += run * size;
    for (std::size_t d = rank - (rank > 0); d-- > 0;) {  // step the outer indices like an odometer
      row += strides[d] * size;
      if (++index[d] < shape[d]) break;
      row -= strides[d] * size * shape[d];
      index[d] = 0;
    }
  }
}

float f32_of_f16(std::uint16_t bits) {
  const float sign = (bits & 0x8000u) ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1f;
  const auto mantissa = static_cast<float>(bits & 0x3ffu);
  if (exponent == 0x1f) return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * mantissa * 0x1p-24f;
  float value = 1.0f + mantissa * 0x1p-10f;
  for (int e = 15; e < exponent; ++e) value *= 2.0f;
  for (int e = exponent; e < 15; ++e) value *= 0.5f;
  return sign * value;
}

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double element_as_double(const void* at, DType dtype) {
  switch (dtype) {
    case DType::f16:
      return static_cast<double>(f32_of_f16(read<std::uint16_t>(at)));
    case DType::bf16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(read<std::uint16_t>(at)) << 16;
      return static_cast<double>(read<float>(&bits));
    }
    case DType::f32:
      return static_cast<double>(read<float>(at));
    case DType::f64:
      return read<double>(at);
    case DType::i8:
      return read<std::int8_t>(at);
    case DType::i16:
      return read<std::int16_t>(at);
    case DType::i32:
      return read<std::int32_t>(at);
    case DType::i64:
      return static_cast<double>(read<std::int64_t>(at));
    case DType::u8:
    case DType::boolean:
      return read<std::uint8_t>(at);
    case DType::u16:
      return read<std::uint16_t>(at);
    case DType::u32:
      return read<std::uint32_t>(at);
    case DType::u64:
      return static_cast<double>(read<std::uint64_t>(at));
    default:
      throw Error(std::string("Tensor::item: a ") + name_of(dtype) + " value is not a real number");
  }
}

}  // namespace

Tensor Tensor::empty(DType dtype, const Shape& shape) {
  const std::int64_t bytes = bytes_of(dtype, shape, "Tensor::empty");
  // An empty tensor has an address too, so that no kernel ever meets a null pointer.
  void* memory = ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), alignment, std::nothrow);
  if (!memory) {
    throw Error(Status::out_of_memory, std::string("Tensor::empty: no host memory for ") + name_of(dtype) + shape.str() + ", " +
                                           std::to_string(bytes) + " bytes requested; use a smaller batch or model");
  }
  std::shared_ptr<void> owner(memory, [](void* p) { ::operator delete(p, alignment); });
  auto storage = std::make_shared<Storage>();
  storage->address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
  storage->size_bytes = static_cast<std::uint64_t>(bytes);
  storage->owner = std::move(owner);
  const std::uint64_t address = storage->address;
  return make(std::move(storage), address, dtype, shape);
}

Tensor Tensor::zeros(DType dtype, const Shape& shape) {
  Tensor t = empty(dtype, shape);
  std::memset(t.raw(), 0, static_cast<std::size_t>(t.size_bytes()));
  return t;
}

Tensor Tensor::borrow(void* host, DType dtype, const Shape& shape, std::shared_ptr<void> owner) {
  const std::int64_t bytes = bytes_of(dtype, shape, "Tensor::borrow");
  if (!host && bytes > 0)
    throw Error(std::string("Tensor::borrow: wanted memory for ") + name_of(dtype) + shape.str() + ", got a null pointer");
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

bool Tensor::is_dense() const {
  if (count() == 0) return true;
  const auto dense = dense_strides(shape_);
  for (std::size_t i = 0; i < shape_.rank(); ++i) {
    if (shape_[i] != 1 && strides_[i] != dense[i]) return false;  // the stride of a size of 1 is never taken
  }
  return true;
}

bool Tensor::on_host() const {
  return defined() && (!storage_->device || storage_->device->host_addressable());
}

std::uintptr_t Tensor::checked(DType wanted) const {
  if (!defined()) throw Error(std::string("Tensor::data: wanted ") + name_of(wanted) + ", got an undefined tensor");
  if (dtype_ != wanted) throw Error(std::string("Tensor::data: wanted ") + name_of(wanted) + ", got " + str());
  if (!on_host()) throw Error("Tensor::data: " + str() + " is in device memory; call to_host() first");
  return static_cast<std::uintptr_t>(address_);
}

double Tensor::item() const {
  if (!defined()) throw Error("Tensor::item: wanted one element, got an undefined tensor");
  if (count() != 1) throw Error("Tensor::item: wanted one element, got " + str());
  if (on_host()) return element_as_double(raw(), dtype_);
  std::array<std::byte, 16> element;
  storage_->device->download(address_, element.data(), static_cast<std::uint64_t>(size_of(dtype_)));
  return element_as_double(element.data(), dtype_);
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (!defined()) throw Error("Tensor::reshape: got an undefined tensor");
  if (shape.count() != count()) {
    throw Error("Tensor::reshape: " + str() + " has " + std::to_string(count()) + " elements, " + shape.str() + " wants " +
                std::to_string(shape.count()));
  }
  if (!is_dense()) throw Error("Tensor::reshape: wanted a dense tensor, got a strided view " + str() + "; call to_host() for a dense copy");
  return make(storage_, address_, dtype_, shape);
}

Tensor Tensor::slice(std::int64_t axis, std::int64_t begin, std::int64_t end) const {
  if (!defined()) throw Error("Tensor::slice: got an undefined tensor");
  const auto a = static_cast<std::size_t>(resolve_axis(axis, shape_.rank(), "Tensor::slice of " + str()));
  if (begin < 0 || begin > end || end > shape_[a]) {
    throw Error("Tensor::slice of " + str() + ": wanted 0 <= begin <= end <= " + std::to_string(shape_[a]) + " on axis " +
                std::to_string(a) + ", got [" + std::to_string(begin) + ", " + std::to_string(end) + ")");
  }
  Tensor view = *this;
  view.shape_.set(a, end - begin);
  // Unsigned arithmetic wraps, so a negative stride steps back.
  if (view.count() > 0) view.address_ += static_cast<std::uint64_t>(begin * strides_[a] * size_of(dtype_));
  return view;
}

Tensor Tensor::transpose(const std::vector<std::int64_t>& permutation) const {
  if (!defined()) throw Error("Tensor::transpose: got an undefined tensor");
  const std::size_t rank = shape_.rank();
  if (permutation.size() != rank) {
    throw Error("Tensor::transpose of " + str() + ": wanted " + std::to_string(rank) + " axes, got " + std::to_string(permutation.size()));
  }
  Tensor view = *this;
  std::array<bool, Shape::max_rank> seen{};
  for (std::size_t i = 0; i < rank; ++i) {
    const auto from = static_cast<std::size_t>(resolve_axis(permutation[i], rank, "Tensor::transpose of " + str()));
    if (seen[from]) throw Error("Tensor::transpose of " + str() + ": axis " + std::to_string(from) + " is named twice");
    seen[from] = true;
    view.shape_.set(i, shape_[from]);
    view.strides_[i] = strides_[from];
  }
  return view;
}

Tensor Tensor::to_host() const {
  if (!defined()) throw Error("Tensor::to_host: got an undefined tensor");
  Tensor copy = empty(dtype_, shape_);
  if (count() == 0) return copy;
  const std::int64_t size = size_of(dtype_);
  auto* to = static_cast<std::byte*>(copy.raw());
  if (on_host()) {
    if (is_dense())
      std::memcpy(to, raw(), static_cast<std::size_t>(size_bytes()));
    else
      copy_strided(to, host_pointer(address_), shape_, strides_.data(), size);
  } else if (is_dense()) {
    storage_->device->download(address_, to, static_cast<std::uint64_t>(size_bytes()));
  } else {
    // Fetch the span of addresses that the view covers, then pick from it.
    std::int64_t lowest = 0, highest = 0;
    for (std::size_t i = 0; i < shape_.rank(); ++i) {
      const std::int64_t reach = (shape_[i] - 1) * strides_[i];
      (reach < 0 ? lowest : highest) += reach;
    }
    const Tensor span = empty(dtype_, {highest - lowest + 1});
    storage_->device->download(address_ + static_cast<std::uint64_t>(lowest * size), host_pointer(span.address()),
                               static_cast<std::uint64_t>(span.size_bytes()));
    copy_strided(to, host_pointer(span.address()) - lowest * size, shape_, strides_.data(), size);
  }
  return copy;
}

}  // namespace tenon
