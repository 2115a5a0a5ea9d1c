// SPDX-License-Identifier: Apache-2.0
#include "onnx/rules/quantization.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "onnx/rules/dtypes.h"

namespace tenon::onnx {
namespace {

/// True for a constant of zeros only.
bool is_zero(Value value) {
  const ValueInfo& info = value.graph().info(value.id());
  if (info.kind != ValueKind::constant || !info.constant.on_host()) return false;
  const std::vector<double> elements = info.constant.to(DType::f64).to_vector<double>();
  return std::ranges::all_of(elements, [](double element) { return element == 0; });
}

/// The same zero point, absent if it is a constant of zeros.
Value unless_zero(Value zero_point) {
  return zero_point.present() && !is_zero(zero_point) ? zero_point : Value();
}

/// The dtypes that QuantizeLinear makes.
bool is_quantized(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16 || dtype == DType::u16;
}

/// Whether scale and zero point broadcast to x, and the zero point has the dtype `q`.
bool fits_elements(Value x, const Quantization& by, DType q) {
  const auto broadcasts = [shape = x.shape()](Value parameter) {
    const Shape given = parameter.shape();
    if (given.rank() > shape.rank()) return false;
    for (std::size_t i = 0; i < given.rank(); ++i) {
      if (given[i] != 1 && given[i] != shape[i + shape.rank() - given.rank()]) return false;
    }
    return true;
  };
  return broadcasts(by.scale) && (!by.zero_point.present() || (by.zero_point.dtype() == q && broadcasts(by.zero_point)));
}

/// The largest magnitude of q - zero_point.
double max_magnitude(DType q, bool zero_point) {
  switch (q) {
    case DType::i8:
      return zero_point ? 255 : 128;
    case DType::u8:
      return 255;
    case DType::i16:
      return zero_point ? 65535 : 32768;
    case DType::u16:
      return 65535;
    default:
      return 4294967296.0;
  }
}

/// The elements that an integer dtype represents.
struct Range {
  double low, high;
};
template <class T>
Range range_of() {
  return {static_cast<double>(std::numeric_limits<T>::min()), static_cast<double>(std::numeric_limits<T>::max())};
}
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return range_of<std::int8_t>();
    case DType::u8:
      return range_of<std::uint8_t>();
    case DType::i16:
      return range_of<std::int16_t>();
    default:
      return range_of<std::uint16_t>();
  }
}

/// Each element of `parameter` repeated for the `block_size` neighbours along `axis` that it is for.
Value repeat_blocks(Value parameter, const Shape& shape, std::size_t axis, std::int64_t block_size) {
  const std::int64_t size = shape[axis], blocks = parameter.shape()[axis];
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  Value repeated = ops::expand(ops::reshape(parameter, Shape{outer, blocks, 1, inner}), Shape{outer, blocks, block_size, inner});
  repeated = ops::reshape(repeated, Shape{outer, blocks * block_size, inner});
  if (blocks * block_size != size) repeated = ops::slice(repeated, 1, 0, size);
  return ops::reshape(repeated, shape);
}

}  // namespace

Value spread(Node& node, Value parameter, const Shape& shape, std::int64_t axis, std::int64_t block_size) {
  if (!parameter.present()) return parameter;
  const Shape given = parameter.shape();
  if (given.count() == 1) return given.rank() == 0 ? parameter : ops::reshape(parameter, Shape{});
  if (block_size < 0) node.fail(fmt::format("expected a block_size of 0 or more, got {}", block_size));
  const auto along = static_cast<std::size_t>(node.resolve_axis(axis, static_cast<std::int64_t>(shape.rank())));
  if (block_size == 0) {
    if (given.rank() != 1 || given[0] != shape[along]) {
      node.fail(fmt::format("expected a scale or zero point of one element, or of ({}) for axis {} of {}, got {}", shape[along], along,
                            shape.str(), given.str()));
    }
    Shape per_index = given;
    for (std::size_t i = along + 1; i < shape.rank(); ++i) per_index.push_back(1);
    return ops::reshape(parameter, per_index);
  }
  const std::int64_t size = shape[along];
  const std::int64_t block = std::clamp<std::int64_t>(size, 1, block_size);
  Shape blocks = shape;
  blocks.set(along, size / block + (size % block != 0 ? 1 : 0));
  if (given != blocks) {
    node.fail(fmt::format("expected a scale or zero point of {} for blocks of {} along axis {} of {}, got {}", blocks.str(), block_size,
                          along, shape.str(), given.str()));
  }
  if (shape.count() == 0) return node.scalar(parameter.dtype(), 0);  // broadcasts, and nothing reads it
  return block == 1 ? parameter : repeat_blocks(parameter, shape, along, block);
}

Quantization quantization_of(Node& node, std::size_t scale, std::size_t zero_point) {
  Quantization by{node.input(scale), node.optional_input(zero_point)};
  for (Value* parameter : {&by.scale, &by.zero_point}) {
    if (!parameter->present()) continue;
    const Shape shape = parameter->shape();
    if (shape.count() != 1) node.fail(fmt::format("expected a scale and a zero point of one element, got {}", shape.str()));
    *parameter = spread(node, *parameter, {}, 0, 0);
  }
  return by;
}

Quantization quantization_along(Node& node, std::size_t scale, std::size_t zero_point, const Shape& shape, std::int64_t axis) {
  return {spread(node, node.input(scale), shape, axis, 0), spread(node, node.optional_input(zero_point), shape, axis, 0)};
}

Value centred(Value q, Value zero_point, DType dtype) {
  const Value elements = cast_to(q, dtype);
  return !zero_point.present() || is_zero(zero_point) ? elements : ops::sub(elements, cast_to(zero_point, dtype));
}

Value dequantize(Value q, const Quantization& by) {
  const DType dtype = by.scale.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const bool fits = (is_quantized(q.dtype()) || q.dtype() == DType::i32) && fits_elements(q, by, q.dtype());
  if (fits) return ops::dequantize_linear(q, cast_to(by.scale, dtype), unless_zero(by.zero_point));
  return ops::mul(centred(q, by.zero_point, dtype), cast_to(by.scale, dtype));
}

Value quantize(Value x, const Quantization& by, DType to) {
  // The op rounds the quotient of 16-bit floats to f32, ONNX to 16 bits.
  const bool rounds_as_onnx = x.dtype() == DType::f32 || x.dtype() == DType::f64;
  if (rounds_as_onnx && is_quantized(to) && fits_elements(x, by, to)) {
    return ops::quantize_linear(x, cast_to(by.scale, x.dtype()), unless_zero(by.zero_point), to);
  }
  // The quotient is rounded before the zero point is added, as ONNX has it. f16 and bf16 do not hold the sum, so it is computed in f32.
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Value q = cast_to(ops::round(ops::div(x, cast_to(by.scale, x.dtype()))), wide);
  if (by.zero_point.present() && !is_zero(by.zero_point)) q = ops::add(q, cast_to(by.zero_point, wide));
  const Range range = range_of(to);
  return ops::cast(ops::clip(q, range.low, range.high), to);
}

DynamicQuantization quantize_dynamically(Node& node, Value x) {
  if (x.dtype() == DType::f32) {
    const ops::DynamicQuantization made = ops::dynamic_quantize_linear(x);
    return {made.q, made.scale, made.zero_point};
  }
  const Value zero = node.scalar(x.dtype(), 0), one = node.scalar(x.dtype(), 1);
  const bool empty = x.shape().count() == 0;
  const Value low = empty ? zero : ops::minimum(ops::reduce_min(x), zero);
  const Value high = empty ? zero : ops::maximum(ops::reduce_max(x), zero);
  // Zeros only have the scale 1 / 255, as in the reference implementation of ONNX, instead of 0 / 0.
  const Value range = ops::sub(high, low);
  const Value scale = ops::div(ops::where(ops::equal(range, zero), one, range), 255);
  const Value offset = ops::round(ops::clip(ops::sub(zero, ops::div(low, scale)), 0, 255));
  const Value zero_point = ops::cast(offset, DType::u8);
  return {quantize(x, {scale, zero_point}, DType::u8), scale, zero_point};
}

ZeroPoint zero_point_of_lines(Value zero_point, DType operand, std::int64_t lines) {
  zero_point = unless_zero(zero_point);
  if (!zero_point.present()) return {};
  const Shape shape = zero_point.shape();
  if (zero_point.dtype() != operand) return {{}, false};
  if (shape.count() == 1) return {shape.rank() == 0 ? zero_point : ops::reshape(zero_point, Shape{})};
  return {zero_point, shape == Shape{lines}};
}

Value multiply_integers(Value a, Value a_zero_point, Value b, Value b_zero_point) {
  const auto is_byte = [](Value x) { return x.dtype() == DType::i8 || x.dtype() == DType::u8; };
  if (!is_byte(a) || !is_byte(b)) return {};
  const Shape left = a.shape(), right = b.shape();
  const ZeroPoint of_a = zero_point_of_lines(a_zero_point, a.dtype(), left.rank() < 2 ? 1 : left[left.rank() - 2]);
  const ZeroPoint of_b = zero_point_of_lines(b_zero_point, b.dtype(), right.rank() < 2 ? 1 : right[right.rank() - 1]);
  return of_a.fits && of_b.fits ? ops::matmul_integer(a, b, of_a.value, of_b.value) : Value();
}

std::optional<Quantization> quantization_of_lines(Node& node, const Quantization& by, DType integers, std::int64_t lines) {
  if (integers != DType::i8 && integers != DType::u8) return {};
  if (by.scale.dtype() != DType::f32 || (by.zero_point.present() && by.zero_point.dtype() != integers)) return {};
  const auto fitting = [lines](Value parameter) {
    if (parameter.shape().count() == 1) return parameter.shape().rank() == 0 ? parameter : ops::reshape(parameter, Shape{});
    return parameter.shape() == Shape{lines} ? parameter : Value();
  };
  const Quantization found{fitting(by.scale), fitting(by.zero_point.present() ? by.zero_point : node.scalar(integers, 0))};
  if (!found.scale.present() || !found.zero_point.present()) return {};
  return found;
}

DType product_dtype(double terms, DType a, bool a_zero_point, DType b, bool b_zero_point) {
  // Integers are exact in f32 up to 2^24, whatever the order of the sum.
  const double largest = terms * max_magnitude(a, a_zero_point) * max_magnitude(b, b_zero_point);
  return largest <= 16777216.0 ? DType::f32 : DType::f64;
}

}  // namespace tenon::onnx
