// SPDX-License-Identifier: Apache-2.0
// Views are O(1) on host and device memory; expected elements are written by hand.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

#include <tenon/tensor.h>

#include "far_memory.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The claim holds for the host tensor and its copy in device memory, and no view copies.
template <class Claim>
void on_both(const Tensor& host, Claim&& claim) {
  const auto device = std::make_shared<FarMemory>();
  const Tensor far = far_copy(host, device);  // before a claim that writes
  claim(host);
  claim(far);
}

}  // namespace

TEST_CASE("view: a slice takes every step-th element, forwards and backwards") {
  on_both(iota({7}), [](const Tensor& t) {
    CHECK(ints(t.slice(0, 1, 6, 2)) == Ints{1, 3, 5});
    CHECK(ints(t.slice(0, 0, 7, 3)) == Ints{0, 3, 6});
    CHECK(ints(t.slice(0, 6, -1, -1)) == Ints{6, 5, 4, 3, 2, 1, 0});
    CHECK(ints(t.slice(0, 5, 0, -2)) == Ints{5, 3, 1});
    CHECK(ints(t.slice(0, 0, -1, -5)) == Ints{0});
    CHECK(ints(t.slice(0, 2, 7, std::int64_t{1} << 62)) == Ints{2});
    CHECK(ints(t.slice(0, 6, -1, INT64_MIN)) == Ints{6});
    CHECK(t.slice(0, 3, 3, -1).count() == 0);
    // The steps of a slice of a slice multiply.
    CHECK(ints(t.slice(0, 6, -1, -2).slice(0, 3, 0, -1)) == Ints{0, 2, 4});
  });
  const Tensor t = iota({7});
  CHECK_ERROR("Tensor::slice of i32(7): expected a step other than 0 on axis 0, got [0, 3) step 0", t.slice(0, 0, 3, 0));
  CHECK_ERROR("Tensor::slice of i32(7): expected 7 > begin >= end >= -1 on axis 0, got [7, -1) step -1", t.slice(0, 7, -1, -1));
  CHECK_ERROR("Tensor::slice of i32(7): expected 0 <= begin <= end <= 7 on axis 0, got [3, 2)", t.slice(0, 3, 2, 1));
  CHECK_ERROR("Tensor::slice: got an undefined tensor", Tensor().slice(0, 0, 1));
}

TEST_CASE("view: narrow takes an offset and a length") {
  on_both(iota({3, 4}), [](const Tensor& t) {
    CHECK(ints(t.narrow(1, 1, 2)) == Ints{1, 2, 5, 6, 9, 10});
    CHECK(t.narrow(0, 3, 0).shape() == Shape{0, 4});
  });
  CHECK_ERROR("Tensor::narrow of i32(3,4): expected a part of [0, 4) on axis 1, got 3 from 2 on", iota({3, 4}).narrow(1, 2, 3));
  CHECK_THROWS_AS(iota({3, 4}).narrow(0, 1, INT64_MAX), Error);
}

TEST_CASE("view: select drops the axis, an index counts from either end") {
  on_both(iota({3, 4}), [](const Tensor& t) {
    CHECK(t.select(0, 1).shape() == Shape{4});
    CHECK(ints(t.select(0, 1)) == Ints{4, 5, 6, 7});
    CHECK(ints(t.select(1, -1)) == Ints{3, 7, 11});
    CHECK(t[2][-4].item() == 8.0);
    CHECK(t[2][-4].shape().rank() == 0);
  });
  CHECK_ERROR("Tensor::select of i32(3,4): index 4 is out of range for axis 1 of size 4", iota({3, 4}).select(1, 4));
  CHECK_ERROR("Tensor::select of i32(3,4): index -5 is out of range for axis 1 of size 4", iota({3, 4}).select(-1, -5));
  CHECK_THROWS_AS(iota({}).select(0, 0), Error);
}

TEST_CASE("view: axes are permuted by a list or swapped in pairs") {
  on_both(iota({2, 3}), [](const Tensor& t) {
    CHECK(ints(t.transpose(0, -1)) == Ints{0, 3, 1, 4, 2, 5});
    CHECK(ints(t.permute({1, 0})) == Ints{0, 3, 1, 4, 2, 5});
    CHECK(ints(t.transpose(1, 1)) == Ints{0, 1, 2, 3, 4, 5});
  });
  CHECK_ERROR("Tensor::transpose of i32(2,3): axis 2 is out of range for rank 2, expected -2 to 1", iota({2, 3}).transpose(0, 2));
}

TEST_CASE("view: expand repeats by stride 0") {
  on_both(iota({2, 1}), [](const Tensor& t) {
    const Tensor wide = t.expand({3, 2, 4});
    CHECK(wide.address() == t.address());
    CHECK(wide.strides()[0] == 0);
    CHECK(wide.strides()[2] == 0);
    CHECK(ints(wide[2]) == Ints{0, 0, 0, 0, 1, 1, 1, 1});
    CHECK(t.expand({2, 0}).count() == 0);
  });
  CHECK(ints(Tensor::scalar<std::int32_t>(7).expand({3})) == Ints{7, 7, 7});
  CHECK_ERROR("Tensor::expand of i32(2,3): expected sizes equal to those of (4,3) or 1, counted from the last",
              iota({2, 3}).expand({4, 3}));
  CHECK_THROWS_AS(iota({2, 3}).expand({3}), Error);
}

TEST_CASE("view: an expansion beyond the maximum size is rejected") {
  CHECK_ERROR("Tensor::expand of f64(): a dense f64(2305843009213693952) needs more bytes than any memory has",
              Tensor::scalar(1.0).expand({std::int64_t{1} << 61}));
}

TEST_CASE("view: squeeze and unsqueeze drop and add axes of size 1") {
  on_both(iota({1, 3, 1}), [](const Tensor& t) {
    CHECK(t.squeeze().shape() == Shape{3});
    CHECK(t.squeeze(-1).shape() == Shape{1, 3});
    CHECK(t.unsqueeze(0).shape() == Shape{1, 1, 3, 1});
    CHECK(t.unsqueeze(-1).shape() == Shape{1, 3, 1, 1});
    CHECK(ints(t.unsqueeze(2).squeeze()) == Ints{0, 1, 2});
    CHECK(t.unsqueeze(2).is_dense());
  });
  CHECK_ERROR("Tensor::squeeze of i32(1,3): expected an axis of size 1, got axis 1 of size 3", iota({1, 3}).squeeze(1));
  CHECK_THROWS_AS(iota({3}).unsqueeze(2), Error);
  CHECK_THROWS_AS(iota({1, 1, 1, 1, 1, 1, 1, 1}).unsqueeze(0), Error);  // a ninth axis
}

TEST_CASE("view: flip reverses an axis") {
  on_both(iota({2, 3}), [](const Tensor& t) {
    CHECK(ints(t.flip(1)) == Ints{2, 1, 0, 5, 4, 3});
    CHECK(ints(t.flip(0).flip(1)) == Ints{5, 4, 3, 2, 1, 0});
    CHECK(ints(t.flip(0).flip(0)) == ints(t));
  });
  CHECK(iota({0, 2}).flip(0).count() == 0);
}

TEST_CASE("view: a diagonal is the elements (i, i + offset)") {
  on_both(iota({3, 4}), [](const Tensor& t) {
    CHECK(ints(t.diagonal()) == Ints{0, 5, 10});
    CHECK(ints(t.diagonal(1)) == Ints{1, 6, 11});
    CHECK(ints(t.diagonal(-2)) == Ints{8});
    CHECK(t.diagonal(4).count() == 0);
    CHECK(t.diagonal(INT64_MIN).count() == 0);
  });
  const Tensor cube = iota({2, 3, 2});
  CHECK(cube.diagonal(0, 0, 2).shape() == Shape{3, 2});
  CHECK(ints(cube.diagonal(0, 0, 2)) == Ints{0, 7, 2, 9, 4, 11});
  CHECK_ERROR("Tensor::diagonal of i32(2,3,2): expected two axes, got axis 1 twice", cube.diagonal(0, 1, 1));
}

TEST_CASE("view: views of device memory copy nothing until elements are read") {
  const auto device = std::make_shared<FarMemory>();
  const Tensor t = far_copy(iota({4, 4}), device);
  const Tensor view = t.flip(0).slice(1, 0, 4, 2).transpose(0, 1).unsqueeze(0).expand({2, 2, 4});
  CHECK(device->downloaded + device->uploaded + device->moved == 0);
  CHECK(ints(view[1]) == Ints{12, 8, 4, 0, 14, 10, 6, 2});
}

TEST_CASE("contiguous: dense memory is kept, a strided view becomes dense on its device") {
  const Tensor host = iota({2, 3});
  CHECK(host.contiguous().address() == host.address());
  const Tensor turned = host.transpose(0, 1).contiguous();
  CHECK(turned.is_dense());
  CHECK(ints(turned) == Ints{0, 3, 1, 4, 2, 5});
  const auto device = std::make_shared<FarMemory>();
  const Tensor there = far_copy(host, device).flip(1).contiguous();
  CHECK_FALSE(there.on_host());
  CHECK(there.is_dense());
  CHECK(ints(there) == Ints{2, 1, 0, 5, 4, 3});
}

TEST_CASE("copy_from: elements reach a strided view and nothing outside it") {
  on_both(iota({3, 4}), [](const Tensor& t) {
    Tensor column = t.select(1, 2);
    column.copy_from(Tensor::of<std::int32_t>({-1, -2, -3}, {3}));
    CHECK(ints(t) == Ints{0, 1, -1, 3, 4, 5, -2, 7, 8, 9, -3, 11});
    Tensor backwards = t.select(0, 0).flip(0);
    backwards.copy_from(Tensor::of<std::int32_t>({1, 2, 3, 4}, {4}));
    CHECK(ints(t[0]) == Ints{4, 3, 2, 1});
  });
}

TEST_CASE("copy_from: source and destination may overlap") {
  on_both(iota({6}), [](const Tensor& t) {
    Tensor right = t.narrow(0, 1, 5);
    right.copy_from(t.narrow(0, 0, 5));
    CHECK(ints(t) == Ints{0, 0, 1, 2, 3, 4});
  });
  on_both(iota({2, 2}), [](const Tensor& t) {
    Tensor self = t;
    self.copy_from(t.transpose(0, 1));
    CHECK(ints(t) == Ints{0, 2, 1, 3});
  });
}

TEST_CASE("copy_from: copies between devices and the host take the shortest path") {
  const auto device = std::make_shared<FarMemory>(), other = std::make_shared<FarMemory>();
  const Tensor a = far_copy(iota({4}), device);
  Tensor b = far_copy(Tensor::zeros(DType::i32, {4}), device);
  device->uploaded = device->downloaded = device->moved = 0;
  b.copy_from(a);
  CHECK(device->moved == 16);
  CHECK(device->downloaded == 0);
  Tensor c = far_copy(Tensor::zeros(DType::i32, {4}), other);
  c.copy_from(a);
  CHECK(ints(c) == Ints{0, 1, 2, 3});
  CHECK(device->downloaded == 16);
  CHECK(other->uploaded == 16);
  Tensor host = Tensor::zeros(DType::i32, {4});
  host.copy_from(a.flip(0));
  CHECK(ints(host) == Ints{3, 2, 1, 0});
}

TEST_CASE("copy_from: mismatched operands are rejected") {
  Tensor t = iota({2, 2});
  CHECK_ERROR("Tensor::copy_from: expected i32(2,2), got i32(4)", t.copy_from(iota({4})));
  CHECK_ERROR("Tensor::copy_from: expected i32(2,2), got an undefined tensor", t.copy_from(Tensor()));
  Tensor repeated = iota({1}).expand({3});
  CHECK_ERROR(
      "Tensor::copy_from: expected a tensor without repeated elements, got i32(3) which repeats them along axis 0; "
      "contiguous() makes a copy",
      repeated.copy_from(iota({3})));
}

TEST_CASE("fill: sets the elements of a view") {
  on_both(iota({2, 3}), [](const Tensor& t) {
    Tensor middle = t.select(1, 1);
    middle.fill(-9);
    CHECK(ints(t) == Ints{0, -9, 2, 3, -9, 5});
  });
  CHECK(Tensor::full(DType::f64, {2}, 0.1).to_vector<double>() == std::vector<double>{0.1, 0.1});
  CHECK(Tensor::full(DType::c64, {}, 2).text() == "2+0i");
}

TEST_CASE("fill: half floats round to the nearest, ties to even") {
  const auto f16 = [](double value) { return Tensor::full(DType::f16, {}, value).item(); };
  const auto bf16 = [](double value) { return Tensor::full(DType::bf16, {}, value).item(); };
  CHECK(f16(1.0 + 0x1p-11) == 1.0);               // a tie: down to even
  CHECK(f16(1.0 + 3 * 0x1p-11) == 1.0 + 0x1p-9);  // a tie: up to even
  CHECK(f16(65519) == 65504.0);
  CHECK(f16(65520) == std::numeric_limits<double>::infinity());
  CHECK(f16(-0x1.8p-24) == -0x1p-23);
  CHECK(f16(0x1p-25) == 0.0);
  CHECK(f16(2047.5) == 2048.0);  // the mantissa carries into the exponent
  CHECK(bf16(1.0 + 0x1p-8) == 1.0);
  CHECK(bf16(1.0 + 0x1p-8 + 0x1p-40) == 1.0 + 0x1p-7);  // past the tie by less than an f32 sees
  CHECK(bf16(1.0 + 3 * 0x1p-8 - 0x1p-40) == 1.0 + 0x1p-7);
  CHECK(bf16(1e39) == std::numeric_limits<double>::infinity());
}

TEST_CASE("fill: a value that the dtype cannot represent is rejected") {
  Tensor t = iota({2});
  CHECK_ERROR("Tensor::fill: expected a value that fits i32, got 1.5", t.fill(1.5));
  CHECK_ERROR("Tensor::fill: expected a value that fits i32, got 2147483648", t.fill(2147483648.0));
  CHECK_ERROR("Tensor::fill: expected a value that fits u8, got -1", Tensor::full(DType::u8, {1}, -1));
  CHECK_ERROR("Tensor::fill: expected 0 or 1 for bool, got 2", Tensor::full(DType::boolean, {1}, 2));
  CHECK_THROWS_AS(Tensor::full(DType::i64, {1}, 0x1p63), Error);
  CHECK(Tensor::full(DType::i64, {}, -0x1p63).to_vector<std::int64_t>() == std::vector<std::int64_t>{INT64_MIN});
}

TEST_CASE("to_vector: another dtype is rejected") {
  CHECK_ERROR("Tensor::to_vector: expected f32, got i32(2)", iota({2}).to_vector<float>());
  CHECK_ERROR("Tensor::to_vector: expected f32, got an undefined tensor", Tensor().to_vector<float>());
  CHECK(Tensor::of<std::uint8_t>({}, {0}).to_vector<std::uint8_t>().empty());
}
