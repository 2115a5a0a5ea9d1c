// SPDX-License-Identifier: Apache-2.0
// core/element.h - single elements of a dtype known at run time, in host memory.
#pragma once

#include <string>

#include <tenon/dtype.h>

namespace tenon {

/// Errors: a complex dtype; the text starts with `what`.
double element_as_double(const void* at, DType dtype, const char* what);

/// Rounds to nearest, ties to even; f16 and bf16 overflow to infinity. Complex elements get an imaginary part of 0.
/// Errors: an integer dtype that cannot represent the value exactly; the text starts with `what`.
void write_element(void* at, DType dtype, double value, const char* what);

/// "1.5", "-7", "true", "1+2i".
std::string element_text(const void* at, DType dtype);

}  // namespace tenon
