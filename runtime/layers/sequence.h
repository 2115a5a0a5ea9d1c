// SPDX-License-Identifier: Apache-2.0
// layers/sequence.h - what layers on sequences (batch, time, features) have in common.
#pragma once

#include <cstdint>
#include <functional>

#include "layers/builder.h"

namespace tenon::layers {

/// Errors  x is not (batch, time, features) with at least one step and one feature.
void expect_sequence(LayerBuilder& builder, const Shape& shape);

/// The constant (rows, columns) with these elements, of the dtype of the parameters.
Value constant_matrix(LayerBuilder& builder, std::int64_t rows, std::int64_t columns,
                      const std::function<double(std::int64_t row, std::int64_t column)>& element);

/// Rows of a table with one row for each position, (positions, n): those of the `time` steps of x, as (time, n).
Value rows_of_steps(LayerBuilder& builder, Value table, std::int64_t time);
/// The number of positions that the steps of x may have: `time`, or more in a Decoding.
std::int64_t positions(const LayerBuilder& builder, std::int64_t time);

}  // namespace tenon::layers
