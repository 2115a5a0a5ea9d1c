// SPDX-License-Identifier: Apache-2.0
// Element types and status codes: names, sizes, epsilons.
#include <doctest/doctest.h>

#include <string>

#include <tenon/dtype.h>
#include <tenon/error.h>

#include "testing.h"

using namespace tenon;

namespace {
constexpr DType every_dtype[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128, DType::i8,     DType::i16,
                                 DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64,  DType::boolean};
}

TEST_CASE("dtype: names round-trip for every dtype") {
  for (const DType t : every_dtype) CHECK(dtype_from(name_of(t)) == t);
}

TEST_CASE("dtype: NumPy and C names are accepted") {
  CHECK(dtype_from("float32") == DType::f32);
  CHECK(dtype_from("float") == DType::f32);
  CHECK(dtype_from("double") == DType::f64);
  CHECK(dtype_from("half") == DType::f16);
  CHECK(dtype_from("bfloat16") == DType::bf16);
  CHECK(dtype_from("int64") == DType::i64);
  CHECK(dtype_from("uint8") == DType::u8);
  CHECK(dtype_from("complex64") == DType::c64);
}

TEST_CASE("dtype: an unknown or empty name yields nothing") {
  CHECK_FALSE(dtype_from("f33").has_value());
  CHECK_FALSE(dtype_from("").has_value());
  CHECK_FALSE(dtype_from("none").has_value());
}

TEST_CASE("dtype: sizes are those of the C++ types") {
  CHECK(size_of(dtype_of<float>()) == 4);
  CHECK(size_of(dtype_of<double>()) == 8);
  CHECK(size_of(dtype_of<std::int16_t>()) == 2);
  CHECK(size_of(dtype_of<bool>()) == 1);
  CHECK(size_of(DType::f16) == 2);
  CHECK(size_of(DType::c128) == 16);
  CHECK(size_of(DType::none) == 0);
}

TEST_CASE("dtype: epsilon is the gap after 1") {
  CHECK(1.0f + static_cast<float>(epsilon_of(DType::f32)) > 1.0f);
  CHECK(1.0f + static_cast<float>(epsilon_of(DType::f32)) / 2 == 1.0f);
  CHECK(epsilon_of(DType::f64) == 0x1p-52);
  CHECK(epsilon_of(DType::f16) == 0x1p-10);
  CHECK(epsilon_of(DType::bf16) == 0x1p-7);
  CHECK_ERROR("epsilon_of: expected f16, bf16, f32 or f64, got i32", epsilon_of(DType::i32));
}

TEST_CASE("error: carries its status, INVALID_ARGUMENT if none is given") {
  CHECK(Error("x").status() == Status::invalid_argument);
  const Error error(Status::device_lost, "cuda:0 is lost");
  CHECK(error.status() == Status::device_lost);
  CHECK(std::string(error.what()) == "cuda:0 is lost");
  CHECK(std::string(name_of(Status::device_lost)) == "DEVICE_LOST");
  CHECK(std::string(name_of(Status::ok)) == "OK");
  CHECK(std::string(name_of(static_cast<Status>(999))) == "UNKNOWN_STATUS");
}
