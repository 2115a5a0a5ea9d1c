// SPDX-License-Identifier: Apache-2.0
// locality.h - ops of windows: a result depends on the elements of its window only.
#pragma once

#include "case.h"

namespace tenon::conformance {

/// NaN or an infinity in an element of the first operand changes only the results that a finite number there changes as well: a window
/// that is computed as a sum over more elements, with weights of 0, spreads them (0 times infinity is NaN).
void expect_locality(const CaseContext& context, const OpLine& line, const Variant& variant, tenon_dtype dtype);

}  // namespace tenon::conformance
