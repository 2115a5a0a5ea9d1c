// SPDX-License-Identifier: Apache-2.0
// tenon/dtype.h - element types. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include <tenon/api.h>
#include <tenon/backend.h>

namespace tenon {

/// The ABI's element types under C++ names.
enum class DType : tenon_dtype {
  none = TENON_DTYPE_NONE,
  f16 = TENON_DTYPE_F16,
  bf16 = TENON_DTYPE_BF16,
  f32 = TENON_DTYPE_F32,
  f64 = TENON_DTYPE_F64,
  c64 = TENON_DTYPE_C64,
  c128 = TENON_DTYPE_C128,
  i8 = TENON_DTYPE_I8,
  i16 = TENON_DTYPE_I16,
  i32 = TENON_DTYPE_I32,
  i64 = TENON_DTYPE_I64,
  u8 = TENON_DTYPE_U8,
  u16 = TENON_DTYPE_U16,
  u32 = TENON_DTYPE_U32,
  u64 = TENON_DTYPE_U64,
  boolean = TENON_DTYPE_BOOL,
};

/// Bytes of one element; 0 for DType::none.
TENON_API std::int64_t size_of(DType dtype);
/// "f32", "bool", ...; dtype_from is the reverse.
TENON_API const char* name_of(DType dtype);
/// Also accepts "float32", "double", "int64" and the like; returns nothing for an unknown name.
TENON_API std::optional<DType> dtype_from(std::string_view name);

inline bool is_floating(DType t) {
  return t == DType::f16 || t == DType::bf16 || t == DType::f32 || t == DType::f64;
}
/// The distance from 1 to the next larger value; floating types only.
TENON_API double epsilon_of(DType dtype);

template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<U, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<U, std::int8_t>)
    return DType::i8;
  else if constexpr (std::is_same_v<U, std::int16_t>)
    return DType::i16;
  else if constexpr (std::is_same_v<U, std::int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<U, std::int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<U, std::uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<U, std::uint16_t>)
    return DType::u16;
  else if constexpr (std::is_same_v<U, std::uint32_t>)
    return DType::u32;
  else if constexpr (std::is_same_v<U, std::uint64_t>)
    return DType::u64;
  else if constexpr (std::is_same_v<U, bool>)
    return DType::boolean;
  else
    static_assert(!sizeof(U*), "no dtype for this C++ type");
}

}  // namespace tenon
