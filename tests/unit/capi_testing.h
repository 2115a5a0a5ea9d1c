// SPDX-License-Identifier: Apache-2.0
// capi_testing.h - helpers of the tests of tenon/runtime.h.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <tenon/runtime.h>

namespace tenon::test {

/// A reference to an object of the API, given up at the end.
template <class T>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T* object) : object_(object) {}
  ~Owned() { tenon_release(object_); }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  /// For out-parameters; a previous object is given up.
  T** out() {
    tenon_release(std::exchange(object_, nullptr));
    return &object_;
  }
  operator T*() const { return object_; }
  T* give() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

/// "" for success, else "INVALID_ARGUMENT: <message>".
inline std::string outcome(TenonError* error) {
  if (error == nullptr) return "";
  const std::string text = std::string(tenon_status_name(tenon_error_status(error))) + ": " + tenon_error_message(error);
  tenon_release(error);
  return text;
}
#define CHECK_OK(...) CHECK(::tenon::test::outcome(__VA_ARGS__) == "")
#define REQUIRE_OK(...) REQUIRE(::tenon::test::outcome(__VA_ARGS__) == "")
/// Check that a call fails with this text, which begins with the name of the status, or with this part of it.
#define CHECK_FAILS(text, ...) CHECK(::tenon::test::outcome(__VA_ARGS__) == (text))
#define CHECK_FAILS_WITH(part, ...)                                                  \
  {                                                                                  \
    const std::string text_of_failure = ::tenon::test::outcome(__VA_ARGS__);         \
    CHECK_MESSAGE(text_of_failure.find(part) != std::string::npos, text_of_failure); \
  }                                                                                  \
  static_assert(true)

/// A text of the API as a string; frees it.
inline std::string taken(char* text) {
  REQUIRE(text != nullptr);
  std::string copy = text;
  tenon_string_free(text);
  return copy;
}
/// A report of the API; frees its text.
inline nlohmann::json parsed(char* text) {
  return nlohmann::json::parse(taken(text));
}

inline std::string test_config_text(const std::string& device = "reference:0") {
  return "backends: {search: ['" TENON_BACKEND_DIRECTORY "'], use: [reference, openblas]}\ndevice: " + device +
         "\nthreads: 2\nlogging: {level: 'off'}\n";
}

inline Owned<TenonContext> make_context(const std::string& device = "reference:0") {
  const std::string config = test_config_text(device);
  TenonContextOptions options{};
  options.struct_size = sizeof options;
  options.config = config.c_str();
  Owned<TenonContext> context;
  REQUIRE_OK(tenon_context_create(&options, context.out()));
  return context;
}

inline Owned<TenonTensor> make_tensor(const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
  Owned<TenonTensor> tensor;
  REQUIRE_OK(
      tenon_tensor_copy_of(values.data(), TENON_DTYPE_F32, static_cast<std::uint32_t>(shape.size()), shape.data(), nullptr, tensor.out()));
  return tensor;
}
inline Owned<TenonTensor> make_labels(const std::vector<std::int64_t>& values) {
  Owned<TenonTensor> tensor;
  const auto count = static_cast<std::int64_t>(values.size());
  REQUIRE_OK(tenon_tensor_copy_of(values.data(), TENON_DTYPE_I64, 1, &count, nullptr, tensor.out()));
  return tensor;
}

inline TenonTensorInfo info_of(const TenonTensor* tensor) {
  TenonTensorInfo info{};
  info.struct_size = sizeof info;
  REQUIRE_OK(tenon_tensor_info(tensor, &info));
  return info;
}

inline std::vector<std::int64_t> shape_of(const TenonTensor* tensor) {
  const TenonTensorInfo info = info_of(tensor);
  return {info.shape, info.shape + info.rank};
}

template <class T = float>
std::vector<T> values_of(const TenonTensor* tensor) {
  const TenonTensorInfo info = info_of(tensor);
  std::vector<T> values(info.element_count);
  REQUIRE_OK(tenon_tensor_read(tensor, values.data(), values.size() * sizeof(T)));
  return values;
}

/// Checks at its end that no more objects are alive than at its beginning.
struct NoLeaks {
  const std::uint64_t before = tenon_object_count();
  ~NoLeaks() { CHECK(tenon_object_count() == before); }
};

}  // namespace tenon::test
