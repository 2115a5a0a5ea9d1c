// SPDX-License-Identifier: Apache-2.0
// core/dtype.cpp - sizes and names of the element types.
#include <tenon/dtype.h>

#include <array>
#include <limits>
#include <string>

#include <tenon/error.h>

namespace tenon {
namespace {

struct Row {
  DType dtype;
  std::int64_t size_bytes;
  const char* name;
  std::array<std::string_view, 2> aliases;  ///< NumPy's name, then C's where there is one
};

constexpr Row rows[] = {
    {DType::f16, 2, "f16", {"float16", "half"}},  {DType::bf16, 2, "bf16", {"bfloat16", ""}},
    {DType::f32, 4, "f32", {"float32", "float"}}, {DType::f64, 8, "f64", {"float64", "double"}},
    {DType::c64, 8, "c64", {"complex64", ""}},    {DType::c128, 16, "c128", {"complex128", ""}},
    {DType::i8, 1, "i8", {"int8", ""}},           {DType::i16, 2, "i16", {"int16", ""}},
    {DType::i32, 4, "i32", {"int32", "int"}},     {DType::i64, 8, "i64", {"int64", ""}},
    {DType::u8, 1, "u8", {"uint8", ""}},          {DType::u16, 2, "u16", {"uint16", ""}},
    {DType::u32, 4, "u32", {"uint32", ""}},       {DType::u64, 8, "u64", {"uint64", ""}},
    {DType::boolean, 1, "bool", {"boolean", ""}},
};

const Row* row_of(DType dtype) {
  for (const Row& row : rows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

std::int64_t size_of(DType dtype) {
  const Row* row = row_of(dtype);
  return row ? row->size_bytes : 0;
}

const char* name_of(DType dtype) {
  const Row* row = row_of(dtype);
  return row ? row->name : "none";
}

std::optional<DType> dtype_from(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const Row& row : rows) {
    if (name == row.name || name == row.aliases[0] || name == row.aliases[1]) return row.dtype;
  }
  return std::nullopt;
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
      return static_cast<double>(std::numeric_limits<float>::epsilon());
    case DType::f64:
      return std::numeric_limits<double>::epsilon();
    default:
      throw Error(std::string("epsilon_of: expected f16, bf16, f32 or f64, got ") + name_of(dtype));
  }
}

}  // namespace tenon
