// SPDX-License-Identifier: Apache-2.0
#include "quantize/integer_epilogue.h"

#include "simd/foreach_target.h"

#include <algorithm>

#include "quantize/quantize_lines.h"
#include "simd/activations.h"
#include "simd/partial_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// put(v, at, n) for each vector v of floats, whose first n belong at `at` of the result.
template <class Activate, class Put>
HWY_INLINE void for_each_vector(const IntegerEpilogue& e, const Activate& activate, const std::int32_t* sums, std::int64_t rows,
                                std::int64_t columns, const Put& put) {
  const Wide<float> d;
  const hn::RebindToSigned<Wide<float>> whole;
  const float *const biases = e.bias, *const residual = e.residual;
  const std::int64_t step = e.y_step;
  for (std::int64_t j = 0; j < columns; j += lanes(d)) {
    const std::int64_t n = std::min(columns - j, lanes(d));
    const auto scale = e.one_scale ? hn::Set(d, *e.scale) : load(d, e.scale + j, n);
    const auto bias = biases == nullptr ? hn::Zero(d) : load(d, biases + j, n);
    for (std::int64_t i = 0; i < rows; ++i) {
      auto v = hn::Mul(hn::ConvertTo(d, hn::LoadU(whole, sums + i * integer_block_columns + j)), scale);
      if (biases != nullptr) v = hn::Add(v, bias);
      if (residual != nullptr) v = hn::Add(v, load(d, residual + i * step + j, n));
      put(activate(d, v), i * step + j, n);
    }
  }
}

template <class Q, class Activate>
void make_bytes(const IntegerEpilogue& e, const Activate& activate, const std::int32_t* sums, std::int64_t rows, std::int64_t columns) {
  const Wide<float> d;
  const hn::Rebind<Q, Wide<float>> narrow;
  Q* const y = reinterpret_cast<Q*>(e.bytes);
  const float y_scale = *e.y_scale;
  const bool by_reciprocal = ReciprocalQuantizer<Q>::takes(y_scale);
  const ReciprocalQuantizer<Q> quantizer(by_reciprocal ? y_scale : 1.0F, static_cast<Q>(e.y_zero_point));
  const auto zero_point = static_cast<float>(e.y_zero_point);
  for_each_vector(e, activate, sums, rows, columns, [&](auto v, std::int64_t at, std::int64_t n) HWY_ATTR {
    hn::Vec<hn::Rebind<Q, Wide<float>>> bytes;
    const bool is_done = quantizer(v, bytes) && by_reciprocal;
    if (HWY_UNLIKELY(!is_done)) bytes = quantized_by_division<Q>(v, hn::Set(d, y_scale), hn::Set(d, zero_point));
    store(bytes, narrow, y + at, n);
  });
}

template <class Activate>
void apply_to_rows(const IntegerEpilogue& e, const Activate& activate, const std::int32_t* sums, std::int64_t rows, std::int64_t columns) {
  if (e.bytes != nullptr) {
    return e.is_signed ? make_bytes<std::int8_t>(e, activate, sums, rows, columns)
                       : make_bytes<std::uint8_t>(e, activate, sums, rows, columns);
  }
  const Wide<float> d;
  float* const y = e.y;
  for_each_vector(e, activate, sums, rows, columns, [&](auto v, std::int64_t at, std::int64_t n) HWY_ATTR { store(v, d, y + at, n); });
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
