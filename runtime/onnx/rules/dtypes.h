// SPDX-License-Identifier: Apache-2.0
// onnx/rules/dtypes.h - dtypes that Tenon's ops do not compute with, by casts.
#pragma once

#include <tenon/functions.h>

namespace tenon::onnx {

/// The dtype in which integer arithmetic on `dtype` is done and cast back from, which wraps around as ONNX does: i32 for 8 and 16 bits, i64
/// for u32 and u64; other dtypes are computed with directly.
inline DType arithmetic_dtype(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16:
      return DType::i32;
    case DType::u32:
    case DType::u64:
      return DType::i64;
    default:
      return dtype;
  }
}

/// The dtype in which products, means and functions of integers are computed: f64 for integers, which is exact below 2^53.
inline DType floating_dtype(DType dtype) {
  return is_floating(dtype) ? dtype : DType::f64;
}

/// x in another dtype; x itself if it has it.
inline Value cast_to(Value x, DType dtype) {
  return x.dtype() == dtype ? x : ops::cast(x, dtype);
}

/// f of the operands cast to `dtype`, cast back to the dtype of the first one.
template <class F, class... V>
Value computed_in(DType dtype, const F& f, Value first, V... rest) {
  return cast_to(f(cast_to(first, dtype), cast_to(rest, dtype)...), first.dtype());
}

}  // namespace tenon::onnx
