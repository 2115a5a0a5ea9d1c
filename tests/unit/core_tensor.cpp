// SPDX-License-Identifier: Apache-2.0
// Tensors: host memory, views, and downloads from device memory.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include <tenon/tensor.h>

#include "far_memory.h"
#include "sanitized.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

#if TENON_IS_SANITIZED
// The sanitizers end the process when memory runs out unless told to return null, as the system's allocator does.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
#endif

namespace {

template <class T>
std::vector<T> values_of(const Tensor& t) {
  const Tensor dense = t.to_host();
  return {dense.data<T>(), dense.data<T>() + dense.count()};
}

}  // namespace

TEST_CASE("tensor: host memory is aligned to 64 bytes, an empty tensor has an address") {
  for (const std::int64_t n : {0, 1, 7, 1000}) {
    const Tensor t = Tensor::empty(DType::u8, {n});
    CHECK(t.address() != 0);
    CHECK(t.address() % 64 == 0);
    CHECK(t.on_host());
    CHECK(t.is_dense());
  }
}

TEST_CASE("tensor: a value of equal bytes is filled in by the device, another one is uploaded") {
  const auto device = std::make_shared<FarMemory>();
  Tensor t = far_copy(iota({3, 2}), device);
  t.fill(0);
  CHECK(ints(t) == Ints(6, 0));
  t.slice(0, 1, 3).fill(-1);
  CHECK(ints(t) == Ints{0, 0, -1, -1, -1, -1});
  CHECK(device->filled == 6 * 4 + 4 * 4);
  CHECK(device->uploaded == 0);
  t.fill(258);
  CHECK(ints(t) == Ints(6, 258));
  t.slice(1, 0, 1).fill(0);  // strided
  CHECK(ints(t) == Ints{0, 258, 0, 258, 0, 258});
  CHECK(device->filled == 6 * 4 + 4 * 4);
}

TEST_CASE("tensor: zeros are zero") {
  CHECK(values_of<double>(Tensor::zeros(DType::f64, {2, 2})) == std::vector<double>(4, 0.0));
}

TEST_CASE("tensor: values round-trip") {
  const Tensor t = Tensor::of<float>({1, 2, 3, 4}, {2, 2});
  CHECK(t.str() == "f32(2,2)");
  CHECK(t.size_bytes() == 16);
  CHECK(t.data<float>()[3] == 4.0f);
  CHECK_ERROR("Tensor::of: shape (3) expects 3 values, got 2", Tensor::of<float>({1, 2}, {3}));
}

TEST_CASE("tensor: a copy shares the elements") {
  Tensor a = Tensor::of<float>({1, 2}, {2});
  Tensor b = a;
  b.data<float>()[0] = 9;
  CHECK(a.data<float>()[0] == 9.0f);
}

TEST_CASE("tensor: access with another dtype or to an undefined tensor is rejected") {
  const Tensor t = Tensor::of<float>({1}, {1});
  CHECK_ERROR("Tensor::data: expected f64, got f32(1)", t.data<double>());
  CHECK_ERROR("Tensor::data: expected f64, got an undefined tensor", Tensor().data<double>());
}

TEST_CASE("tensor: a failed allocation is OUT_OF_MEMORY with the number of bytes") {
  try {
    (void)Tensor::empty(DType::f32, {std::int64_t{1} << 58});
    FAIL("allocated 2^60 bytes");
  } catch (const Error& error) {
    CHECK(error.status() == Status::out_of_memory);
    CHECK(std::string(error.what()) ==
          "Tensor::empty: no host memory for f32(288230376151711744), 1152921504606846976 bytes requested; use a smaller batch or model");
  }
  try {
    (void)Tensor::empty(DType::f64, {std::int64_t{1} << 61});
    FAIL("allocated 2^64 bytes");
  } catch (const Error& error) {
    CHECK(error.status() == Status::out_of_memory);
    CHECK(std::string(error.what()) == "Tensor::empty: f64(2305843009213693952) needs more bytes than any memory has");
  }
}

TEST_CASE("tensor: borrowed memory keeps its owner alive") {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{5, 6});
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const Tensor t = Tensor::borrow(owner->data(), DType::f32, {2}, owner);
    owner.reset();
    CHECK(t.data<float>()[1] == 6.0f);
    CHECK_FALSE(watch.expired());
  }
  CHECK(watch.expired());
  CHECK_ERROR("Tensor::borrow: expected memory for f32(2), got a null pointer", Tensor::borrow(nullptr, DType::f32, {2}));
}

TEST_CASE("tensor: item reads one element of any real dtype") {
  CHECK(Tensor::scalar(2.5f).item() == 2.5);
  CHECK(Tensor::scalar(true).item() == 1.0);
  CHECK(Tensor::scalar<std::int64_t>(-7).item() == -7.0);
  CHECK(Tensor::scalar<std::uint8_t>(200).item() == 200.0);
  CHECK_ERROR("Tensor::item: expected one element, got f32(2)", Tensor::of<float>({1, 2}, {2}).item());
  CHECK_ERROR("Tensor::item: a c64 value is not a real number", Tensor::zeros(DType::c64, {}).item());
}

TEST_CASE("tensor: item decodes half floats") {
  const std::map<std::uint16_t, double> halves = {
      {0x3c00, 1.0}, {0xc000, -2.0}, {0x3555, 0.333251953125}, {0x0001, 0x1p-24}, {0x7bff, 65504.0}};
  for (const auto& [bits, value] : halves) {
    std::uint16_t copy = bits;
    CHECK(Tensor::borrow(&copy, DType::f16, {}).item() == value);
  }
  std::uint16_t infinity = 0xfc00, nan = 0x7e01, brain = 0xc049;
  CHECK(Tensor::borrow(&infinity, DType::f16, {}).item() == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(Tensor::borrow(&nan, DType::f16, {}).item()));
  CHECK(Tensor::borrow(&brain, DType::bf16, {}).item() == -3.140625);
}

TEST_CASE("tensor: reshape keeps the elements and rejects another count") {
  const Tensor t = iota({2, 3});
  const Tensor r = t.reshape({3, 2});
  CHECK(r.address() == t.address());
  CHECK(r.shape() == Shape{3, 2});
  CHECK_ERROR("Tensor::reshape: i32(2,3) has 6 elements, (4) expects 4", t.reshape({4}));
  CHECK_ERROR("Tensor::reshape: expected a dense tensor, got a strided view i32(3,2); call contiguous() for a dense copy",
              t.transpose({1, 0}).reshape({6}));
}

TEST_CASE("tensor: a slice is a view of a part") {
  const Tensor t = iota({4, 3});
  CHECK(values_of<std::int32_t>(t.slice(0, 1, 3)) == std::vector<std::int32_t>{3, 4, 5, 6, 7, 8});
  CHECK(t.slice(0, 1, 3).is_dense());
  CHECK(values_of<std::int32_t>(t.slice(-1, 1, 2)) == std::vector<std::int32_t>{1, 4, 7, 10});
  CHECK_FALSE(t.slice(1, 0, 2).is_dense());
  CHECK(t.slice(0, 4, 4).count() == 0);
  CHECK_ERROR("Tensor::slice of i32(4,3): expected 0 <= begin <= end <= 4 on axis 0, got [2, 5)", t.slice(0, 2, 5));
  CHECK_THROWS_AS(t.slice(2, 0, 1), Error);
}

TEST_CASE("tensor: a transpose permutes, and its dense copy is in the new order") {
  const Tensor t = iota({2, 3, 2});
  const Tensor u = t.transpose({2, 0, 1});
  CHECK(u.shape() == Shape{2, 2, 3});
  CHECK(values_of<std::int32_t>(u) == std::vector<std::int32_t>{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
  CHECK_ERROR("Tensor::transpose of i32(2,3,2): axis 0 is named twice", t.transpose({0, 0, 1}));
  CHECK_ERROR("Tensor::transpose of i32(2,3,2): expected 3 axes, got 2", t.transpose({0, 1}));
}

TEST_CASE("tensor: dense copies of strided views are right for every element size") {
  for (const DType t : {DType::u8, DType::bf16, DType::f32, DType::f64, DType::c128}) {
    const auto size = static_cast<std::size_t>(size_of(t));
    Tensor source = Tensor::empty(t, {3, 5});
    for (std::size_t i = 0; i < 15 * size; ++i) static_cast<unsigned char*>(source.raw())[i] = static_cast<unsigned char>(i);
    const Tensor copy = source.transpose({1, 0}).to_host();
    for (std::size_t r = 0; r < 5; ++r) {
      for (std::size_t c = 0; c < 3; ++c) {
        const auto* got = static_cast<const unsigned char*>(copy.raw()) + (r * 3 + c) * size;
        const auto* expected = static_cast<const unsigned char*>(source.raw()) + (c * 5 + r) * size;
        CHECK(std::memcmp(got, expected, size) == 0);
      }
    }
  }
}

TEST_CASE("tensor: to_host makes a separate copy") {
  Tensor t = Tensor::scalar(1.0f);
  const Tensor copy = t.to_host();
  t.data<float>()[0] = 2;
  CHECK(copy.item() == 1.0);
}

TEST_CASE("tensor: device memory has no host pointer") {
  const auto device = std::make_shared<FarMemory>();
  const Tensor t = far_copy(iota({3, 4}), device);
  CHECK_FALSE(t.on_host());
  CHECK_ERROR("Tensor::data: i32(3,4) is in device memory; call to_host() first", t.data<std::int32_t>());
}

TEST_CASE("tensor: device memory is downloaded, a strided view through the span it covers") {
  const auto device = std::make_shared<FarMemory>();
  const Tensor host = iota({3, 4});
  const Tensor t = far_copy(host, device);
  CHECK(values_of<std::int32_t>(t) == values_of<std::int32_t>(host));
  CHECK(t.slice(0, 2, 3).slice(1, 3, 4).item() == 11.0);
  device->downloaded = 0;
  const Tensor column = t.slice(1, 1, 2);
  CHECK(values_of<std::int32_t>(column) == std::vector<std::int32_t>{1, 5, 9});
  CHECK(device->downloaded == 9 * sizeof(std::int32_t));  // from element 1 to element 9, within the memory
  CHECK(values_of<std::int32_t>(t.transpose({1, 0})) == values_of<std::int32_t>(host.transpose({1, 0})));
}
