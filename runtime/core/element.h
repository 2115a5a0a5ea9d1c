// SPDX-License-Identifier: Apache-2.0
// core/element.h - single elements of a dtype known at run time, in host memory.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/dtype.h>

namespace tenon {

/// Errors: a complex dtype; the text starts with `what`.
double element_as_double(const void* at, DType dtype, const char* what);

/// Rounds to nearest, ties to even; f16 and bf16 overflow to infinity. Complex elements get an imaginary part of 0.
/// Errors: an integer dtype that cannot represent the value exactly; the text starts with `what`.
void write_element(void* at, DType dtype, double value, const char* what);

/// Converts `count` adjacent elements as the op Cast does: float to integer truncates and saturates, NaN becomes 0; integer to a narrower
/// one keeps the low bits; to bool is x != 0; to a float rounds once, to nearest, ties to even.
/// Errors: a complex dtype; the text starts with `what`.
void convert_elements(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t count, const char* what);

/// Calls body(T()) if the dtype is that of an integer type T; false if it is not.
template <class Body>
bool visit_integer(DType dtype, Body&& body) {
  const auto visit = [&](auto zero) { return dtype_of<decltype(zero)>() == dtype && (static_cast<void>(body(zero)), true); };
  return visit(std::int8_t{}) || visit(std::int16_t{}) || visit(std::int32_t{}) || visit(std::int64_t{}) ||  //
         visit(std::uint8_t{}) || visit(std::uint16_t{}) || visit(std::uint32_t{}) || visit(std::uint64_t{});
}

/// "1.5", "-7", "true", "1+2i".
std::string element_text(const void* at, DType dtype);

}  // namespace tenon
