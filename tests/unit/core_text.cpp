// SPDX-License-Identifier: Apache-2.0
// Printing and comparing tensors.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include <tenon/tensor.h>

#include "far_memory.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("text: elements are formatted as in NumPy") {
  CHECK(Tensor::scalar(1.5f).text() == "1.5");
  CHECK(iota({3}).text() == "[0, 1, 2]");
  CHECK(iota({2, 2}).text() == "[[0, 1],\n [2, 3]]");
  CHECK(iota({2, 2, 1}).text() == "[[[0],\n  [1]],\n\n [[2],\n  [3]]]");
  CHECK(iota({0}).text() == "[]");
  CHECK(iota({2, 0}).text() == "[[],\n []]");
  CHECK(Tensor().text() == "undefined");
}

TEST_CASE("text: a long axis is abbreviated to its ends") {
  CHECK(iota({7}).text() == "[0, 1, 2, 3, 4, 5, 6]");
  CHECK(iota({8}).text() == "[0, 1, 2, ..., 5, 6, 7]");
  CHECK(iota({5, 2}).text(1) == "[[0, 1],\n ...,\n [8, 9]]");
  CHECK(iota({1000000}).expand({1000000, 1000000}).text(1) ==
        "[[0, ..., 999999],\n ...,\n [0, ..., 999999]]");  // only the shown elements are read
}

TEST_CASE("text: every kind of element") {
  CHECK(Tensor::of<float>({0.1f, 1e10f, -0.0f}, {3}).text() == "[0.1, 1e+10, -0]");
  CHECK(Tensor::of<double>({1.0 / 3}, {1}).text() == "[0.33333333]");
  CHECK(Tensor::of<bool>({true, false}, {2}).text() == "[true, false]");
  CHECK(Tensor::of<std::int64_t>({INT64_MAX, INT64_MIN}, {2}).text() == "[9223372036854775807, -9223372036854775808]");
  CHECK(Tensor::of<std::uint64_t>({UINT64_MAX}, {1}).text() == "[18446744073709551615]");
  CHECK(Tensor::of<std::uint32_t>({UINT32_MAX}, {1}).text() == "[4294967295]");
  float parts[] = {1, -2};
  CHECK(Tensor::borrow(parts, DType::c64, {}).text() == "1-2i");
}

TEST_CASE("text: streams print tensors, also those of a device") {
  const auto device = std::make_shared<FarMemory>();
  std::ostringstream out;
  out << far_copy(iota({2}), device).flip(0);
  CHECK(out.str() == "[1, 0]");
}

TEST_CASE("equal: compares dtype, shape and bits for any device and layout") {
  const Tensor t = iota({2, 3});
  const auto device = std::make_shared<FarMemory>();
  CHECK(equal(t, far_copy(t, device)));
  CHECK(equal(t.transpose(0, 1), t.transpose(0, 1).contiguous()));
  CHECK_FALSE(equal(t, t.flip(0)));
  CHECK_FALSE(equal(t, t.reshape({3, 2})));
  CHECK_FALSE(equal(t, Tensor::zeros(DType::f32, {2, 3})));
  const Tensor nan = Tensor::scalar(std::numeric_limits<float>::quiet_NaN());
  CHECK(equal(nan, nan.to_host()));
  CHECK_FALSE(equal(Tensor::scalar(0.0f), Tensor::scalar(-0.0f)));
  CHECK(equal(iota({0, 2}), iota({0, 2})));
  CHECK_ERROR("equal: got an undefined tensor", equal(t, Tensor()));
}

TEST_CASE("all_close: within absolute + relative * |b|") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto scalar = [](double v) { return Tensor::scalar(v); };
  CHECK(all_close(scalar(1.0), scalar(1.000009)));
  CHECK_FALSE(all_close(scalar(1.0), scalar(1.00002)));
  CHECK(all_close(scalar(3.0), scalar(3.5), 0, 0.5));
  CHECK(all_close(scalar(infinity), scalar(infinity)));
  CHECK_FALSE(all_close(scalar(infinity), scalar(-infinity)));
  CHECK_FALSE(all_close(scalar(infinity), scalar(1), 1, infinity));
  CHECK_FALSE(all_close(scalar(std::nan("")), scalar(std::nan(""))));
  CHECK(all_close(Tensor::scalar(0.5f), scalar(0.5)));
  CHECK_FALSE(all_close(scalar(1), Tensor::zeros(DType::f64, {1})));
  CHECK_ERROR("all_close: a c64 value is not a real number", all_close(Tensor::zeros(DType::c64, {1}), scalar(0).reshape({1})));
}
