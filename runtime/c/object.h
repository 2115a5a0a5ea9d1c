// SPDX-License-Identifier: Apache-2.0
// c/object.h - the counted objects behind the opaque types of tenon/runtime.h, and how its functions read their arguments.
#pragma once

#include <tenon/runtime.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/context.h>
#include <tenon/error.h>
#include <tenon/shape.h>
#include <tenon/tensor.h>

namespace tenon::c {

/// What kind of object a pointer is.
enum class Kind : std::uint32_t {
  error = 0x7e000001,
  context,
  device,
  tensor,
  cancellation,
  graph,
  parameters,
  program,
  onnx,
  model,
  data,
  batcher,
  request,
  trace,
};
/// "a tensor", for messages.
const char* name_of(Kind kind);

/// The first base of all objects, so that a pointer to one is a pointer to this.
class Object {
 public:
  /// `counted`: by tenon_object_count.
  explicit Object(Kind kind, bool counted = true);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Kind kind() const { return kind_; }
  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  /// Deletes the object with its last reference.
  void release() const;

 private:
  const Kind kind_;
  mutable std::atomic<std::uint32_t> references_{1};
};

/// A wrong argument of a function of the API. The text names the argument; guard() adds the function.
class BadArgument : public Error {
 public:
  using Error::Error;
};

/// Turns the exception that is being handled into an error.
TenonError* error_of_exception(const char* function) noexcept;

/// Runs the body of a function of the API: what it throws becomes the error that is returned.
template <class Body>
TenonError* guard(const char* function, const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return error_of_exception(function);
  }
}

/// Throws the error that a function of the caller returned, and releases it.
void raise(const TenonError* error);

/// The object, of type T with a constant T::kind_of. Errors  null; an object of another kind.
const Object& checked(const void* object, Kind expected, const char* argument);
template <class T>
T& get(const T* object, const char* argument) {
  checked(object, T::kind_of, argument);
  return *const_cast<T*>(object);  // what changes is said by each function
}

/// An argument that must not be null.
template <class T>
T* required(T* pointer, const char* argument) {
  if (pointer == nullptr) throw BadArgument(std::string(argument) + ": expected an address, got NULL");
  return pointer;
}
/// A text that must be given.
inline std::string text(const char* given, const char* argument) {
  return required(given, argument);
}
/// A text that may be absent.
inline std::string optional_text(const char* given) {
  return given == nullptr ? "" : given;
}

/// The elements of an array. Errors  null with a count above 0.
template <class T>
std::span<T> array(T* first, std::uint64_t count, const char* argument) {
  if (count > 0) required(first, argument);
  return {first, static_cast<std::size_t>(count)};
}

Shape shape_of(std::uint32_t rank, const std::int64_t* shape);
/// Errors  a number that is no dtype of tensors.
DType dtype_of(tenon_dtype dtype, const char* argument = "dtype");

/// The caller's struct as this version of the library knows it: fields that an older caller does not have are 0.
/// Errors  struct_size below the first version's; a field that this version does not know, or `reserved`, is not 0.
template <class Struct>
Struct options_of(const Struct* given, const char* argument) {
  Struct own{};
  if (given == nullptr) return own;
  if (given->struct_size < sizeof(std::uint32_t)) {
    throw BadArgument(std::string(argument) + ": expected struct_size to be set to sizeof, got " + std::to_string(given->struct_size));
  }
  std::memcpy(static_cast<void*>(&own), given, std::min<std::size_t>(given->struct_size, sizeof own));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (given->struct_size > sizeof own && std::any_of(bytes + sizeof own, bytes + given->struct_size, [](auto byte) { return byte != 0; })) {
    throw Error(Status::unsupported,
                std::string(argument) + ": a field is set that Tenon " TENON_VERSION " does not know; use a newer version");
  }
  if constexpr (requires { own.reserved; }) {
    if (own.reserved != 0) {
      throw Error(Status::unsupported, std::string(argument) + ": expected 0 in `reserved`, got " + std::to_string(own.reserved));
    }
  }
  return own;
}

/// Fills the fields of the caller's struct that its struct_size covers; what this version does not know of it becomes 0.
template <class Struct>
void fill_info(Struct* out_info, Struct info, const char* argument) {
  const std::uint32_t known = required(out_info, argument)->struct_size;
  if (known < sizeof(std::uint32_t)) {
    throw BadArgument(std::string(argument) + ": expected struct_size to be set to sizeof, got " + std::to_string(known));
  }
  info.struct_size = known;
  if (known > sizeof info) std::memset(reinterpret_cast<unsigned char*>(out_info) + sizeof info, 0, known - sizeof info);
  std::memcpy(static_cast<void*>(out_info), &info, std::min<std::size_t>(known, sizeof info));
}

/// A text that the caller frees by tenon_string_free.
char* new_text(const std::string& text);

}  // namespace tenon::c

struct TenonError final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::error;
  TenonError(tenon_status of, std::string text, bool counted = true) : Object(kind_of, counted), status(of), message(std::move(text)) {}
  tenon_status status;
  std::string message;
};

struct TenonContext final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::context;
  explicit TenonContext(const tenon::Context& context) : Object(kind_of), value(context) {}
  tenon::Context value;
};

struct TenonDevice final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::device;
  explicit TenonDevice(tenon::Device device) : Object(kind_of), value(std::move(device)) {}
  tenon::Device value;
};

struct TenonTensor final : tenon::c::Object {
  static constexpr tenon::c::Kind kind_of = tenon::c::Kind::tensor;
  explicit TenonTensor(tenon::Tensor tensor, bool must_not_change = false)
      : Object(kind_of), value(std::move(tensor)), read_only(must_not_change) {}
  tenon::Tensor value;
  bool read_only;  ///< of the memory, and so of all its views
};

namespace tenon::c {

/// The device, or nothing for NULL, which is the host.
std::optional<Device> optional_device(const TenonDevice* device);
/// Errors  a read-only tensor.
Tensor& writable(const TenonTensor* tensor, const char* argument);
/// An array of tensors. Errors  a null or another object among them, with its index.
std::vector<Tensor> tensors(const TenonTensor* const* first, std::uint64_t count, const char* argument);
/// An array of texts.
std::vector<std::string> texts(const char* const* first, std::uint64_t count, const char* argument);
/// Where a run writes its results: the caller's tensors, undefined for those that are NULL. Errors  null; a read-only tensor.
std::vector<Tensor> given_outputs(TenonTensor* const* outputs, std::uint64_t count);
/// Sets those that are NULL to new objects for the results.
void give_missing(const std::vector<Tensor>& results, TenonTensor** outputs);
/// New objects for the tensors. Errors  a capacity below their number; nothing is written then.
void give(const std::vector<Tensor>& results, TenonTensor** out_tensors, std::uint64_t capacity, const char* argument);

}  // namespace tenon::c
