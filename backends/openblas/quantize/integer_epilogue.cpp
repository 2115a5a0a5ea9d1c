// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_epilogue.h"

#include "simd/foreach_target.h"

#include <algorithm>
#include <cstring>

#include "quantize/quantize_lines.h"
#include "simd/activations.h"
#include "simd/partial_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

constexpr std::int64_t width = integer_block_columns;
// Rows that are quantised at a time.
constexpr std::int64_t quantised_rows = 32;

/// The floats of all columns, of which those that are no results have any values.
template <class Activate>
void make_floats(const IntegerEpilogue& e, const Activate& activate, const std::int32_t* sums, std::int64_t rows, std::int64_t columns,
                 float* out, std::int64_t out_step) {
  const Wide<float> d;
  const hn::RebindToSigned<Wide<float>> whole;
  for (std::int64_t j = 0; j < columns; j += lanes(d)) {
    const std::int64_t n = std::min(columns - j, lanes(d));
    const auto scale = e.one_scale ? hn::Set(d, *e.scale) : load(d, e.scale + j, n);
    const auto bias = e.bias == nullptr ? hn::Zero(d) : load(d, e.bias + j, n);
    for (std::int64_t i = 0; i < rows; ++i) {
      auto v = hn::Mul(hn::ConvertTo(d, hn::LoadU(whole, sums + i * width + j)), scale);
      if (e.bias != nullptr) v = hn::Add(v, bias);
      if (e.residual != nullptr) v = hn::Add(v, load(d, e.residual + i * e.y_step + j, n));
      store(activate(d, v), d, out + i * out_step + j, n);
    }
  }
}

template <class Q>
void quantize_block(const IntegerEpilogue& e, const float* floats, std::int64_t rows, std::int64_t columns) {
  Q bytes[quantised_rows * width];
  const auto zero_point = static_cast<Q>(e.y_zero_point);
  quantize_each<Q, float>(floats, e.y_scale, &zero_point, true, true, bytes, rows * width);
  for (std::int64_t i = 0; i < rows; ++i) {
    if (columns == width) {  // a constant size is two instructions
      std::memcpy(e.bytes + i * e.y_step, bytes + i * width, width);
    } else {
      std::memcpy(e.bytes + i * e.y_step, bytes + i * width, static_cast<std::size_t>(columns));
    }
  }
}

template <class Activate>
void apply_to_rows(const IntegerEpilogue& e, const Activate& activate, const std::int32_t* sums, std::int64_t rows, std::int64_t columns) {
  if (e.bytes == nullptr) return make_floats(e, activate, sums, rows, columns, e.y, e.y_step);
  alignas(64) float floats[quantised_rows * width];
  if (columns < width) std::fill_n(floats, quantised_rows * width, 0.0F);
  for (std::int64_t i = 0; i < rows; i += quantised_rows) {
    const std::int64_t n = std::min(quantised_rows, rows - i);
    const IntegerEpilogue part = e.from(i, 0);
    make_floats(part, activate, sums + i * width, n, columns, floats, width);
    e.is_signed ? quantize_block<std::int8_t>(part, floats, n, columns) : quantize_block<std::uint8_t>(part, floats, n, columns);
  }
}

void apply_to_block(const IntegerEpilogue& e, const std::int32_t* sums, std::int64_t rows, std::int64_t columns) {
  with_activation<float>(e.activation, [&](const auto& activate) { apply_to_rows(e, activate, sums, rows, columns); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {

IntegerEpilogue IntegerEpilogue::from(std::int64_t row, std::int64_t column) const {
  IntegerEpilogue part = *this;
  if (!one_scale) part.scale += column;
  if (bias != nullptr) part.bias += column;
  if (residual != nullptr) part.residual += row * y_step + column;
  if (bytes != nullptr) {
    part.bytes += row * y_step + column;
  } else {
    part.y += row * y_step + column;
  }
  return part;
}

IntegerEpilogue integer_epilogue_of(const sdk::Call& call, std::int64_t columns) {
  const sdk::Epilogue& from = call.epilogue;
  IntegerEpilogue to;
  if (from.scale == nullptr) return to;
  to.scale = from.scale->as<const float>();
  to.one_scale = from.scale->count == 1;
  if (from.bias != nullptr) to.bias = from.bias->as<const float>();
  if (from.residual != nullptr) to.residual = from.residual->as<const float>();
  to.activation = from.activation;
  to.y_step = columns;
  const sdk::Operand& y = call.outputs[0];
  if (y.dtype == TENON_DTYPE_F32) {
    to.y = y.as<float>();
    return to;
  }
  to.bytes = y.as<std::uint8_t>();
  to.is_signed = y.dtype == TENON_DTYPE_I8;
  to.y_scale = from.y_scale->as<const float>();
  if (from.y_zero_point == nullptr) return to;
  to.y_zero_point =
      to.is_signed ? std::int32_t{*from.y_zero_point->as<const std::int8_t>()} : std::int32_t{*from.y_zero_point->as<const std::uint8_t>()};
  return to;
}

void apply_integer_epilogue(const IntegerEpilogue& epilogue, const std::int32_t* sums, std::int64_t rows, std::int64_t columns) {
  TENON_DISPATCH(apply_to_block)(epilogue, sums, rows, columns);
}

}  // namespace tenon::openblas
#endif
