// SPDX-License-Identifier: Apache-2.0
#include "train/program/initializers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "data/draw.h"
#include "exec/immediate.h"

namespace tenon::train {
namespace {

/// x with P(X <= x) = p of the standard normal distribution, for p in [Phi(-2), Phi(2)], to 1e-15.
/// Source  Wichura: Algorithm AS 241 (1988), PPND16.
double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    const double above =
        ((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r + 45921.953931549871457) * r +
           13731.693765509461125) *
              r +
          1971.5909503065514427) *
             r +
         133.14166789178437745) *
            r +
        3.3871328727963666080;
    const double below =
        ((((((5226.4952788528545610 * r + 28729.085735721942674) * r + 39307.895800092710610) * r + 21213.794301586595867) * r +
           5394.1960214247511077) *
              r +
          687.18700749205790830) *
             r +
         42.313330701600911252) *
            r +
        1;
    return q * above / below;
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p)) - 1.6;
  const double above =
      ((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r + 1.27045825245236838258) * r +
         3.64784832476320460504) *
            r +
        5.76949722146069140550) *
           r +
       4.63033784615654529590) *
          r +
      1.42343711074968357734;
  const double below =
      ((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r + 1.48103976427480074590e-1) *
             r +
         6.89767334985100004550e-1) *
            r +
        1.67638483018380384940) *
           r +
       2.05319162663775882187) *
          r +
      1;
  return q < 0 ? -above / below : above / below;
}

/// Phi(-2), and the deviation of the standard normal distribution truncated at 2.
constexpr double beyond_two = 0.022750131948179207;
constexpr double truncated_deviation = 0.87962566103423978;

Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  if (dtype == DType::f64) return Tensor::of(values, shape);
  return Tensor::of(std::vector<float>(values.begin(), values.end()), shape);
}

/// Makes `count` rows of `size` elements orthonormal with two Gram-Schmidt passes per row: one pass leaves rounding errors.
///
/// Source  Giraud, Langou, Rozloznik: The loss of orthogonality in the Gram-Schmidt process (2005).
void orthonormalize(std::vector<double>& rows, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) {
    double* const row = rows.data() + i * size;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const double* const other = rows.data() + j * size;
        const double along = std::inner_product(row, row + size, other, 0.0);
        for (std::size_t k = 0; k < size; ++k) row[k] -= along * other[k];
      }
    }
    const double length = std::sqrt(std::inner_product(row, row + size, row, 0.0));
    for (std::size_t k = 0; k < size; ++k) row[k] /= length;
  }
}

/// A kernel's first two dimensions and its receptive field, the product of the others.
struct Fans {
  double n1 = 1, n2 = 1, field = 1;
};

Fans fans_of(const Initializer& initializer, const Shape& shape) {
  if (shape.rank() == 0)
    throw Error(
        fmt::format("initializer {}: a scalar has no fan-in; use zeros, ones, constant, uniform or normal", name_of(initializer.kind)));
  Fans fans;
  if (shape.rank() == 1) {
    fans.n2 = static_cast<double>(shape[0]);
    return fans;
  }
  fans.n1 = static_cast<double>(shape[0]);
  fans.n2 = static_cast<double>(shape[1]);
  for (std::size_t i = 2; i < shape.rank(); ++i) fans.field *= static_cast<double>(shape[i]);
  return fans;
}

Tensor draw_block(const Context& context, const Device& device, const ParameterSpec& spec, const Shape& shape, const Tensor& key,
                  std::uint32_t stream) {
  const Initializer& initializer = spec.initializer;
  const DType dtype = spec.dtype;
  using Kind = Initializer::Kind;
  const auto fill = [&](double value) {
    Tensor made = device.empty(dtype, shape);
    made.fill(value);
    return made;
  };
  const auto draw = [&](tenon_op op, double a, double b) {
    tenon_attributes_random attributes{};
    attributes.stream = stream;
    attributes.a = a;
    attributes.b = b;
    attributes.dtype = static_cast<tenon_dtype>(dtype);
    // The same bits on every backend (ADR 3), so that a device without the op may get them from another one.
    const Tensor operands[] = {key};
    return exec::run_where_supported(context, device, op, operands, Attributes::of(attributes), {.name = {}, .shape = shape}).front();
  };
  // What is computed in f64 is drawn on the host: the same bits on every backend, and not every device computes with f64.
  const auto* const words = key.data<std::uint64_t>();
  const auto truncated = [&](double mean, double deviation) {
    std::vector<double> values = data::draw_uniform(shape.count(), words[0], words[1], stream, beyond_two, 1 - beyond_two);
    for (double& value : values) value = mean + deviation * normal_quantile(value);
    return from_doubles(dtype, shape, values).to(device);
  };
  const auto uniform = [&](double limit) { return draw(TENON_OP_RandomUniform, -limit, limit); };
  const auto normal = [&](double deviation) {
    return initializer.truncated.value_or(false) ? truncated(0, deviation / truncated_deviation)
                                                 : draw(TENON_OP_RandomNormal, 0, deviation);
  };
  const auto expect_matrix = [&](bool fits) {
    if (!fits) throw Error(fmt::format("initializer {}: expected a matrix, got {}", name_of(initializer.kind), shape.str()));
  };
  const double gain = initializer.gain;
  switch (initializer.kind) {
    case Kind::zeros:
      return fill(0);
    case Kind::ones:
      return fill(1);
    case Kind::constant:
      return fill(initializer.value);
    case Kind::uniform:
      return draw(TENON_OP_RandomUniform, initializer.low, initializer.high);
    case Kind::normal:
      return draw(TENON_OP_RandomNormal, initializer.mean, initializer.stddev);
    case Kind::fan_in_uniform:
      return uniform(gain / std::sqrt(static_cast<double>(spec.fan_in)));
    case Kind::truncated_normal:
      return truncated(initializer.mean, initializer.stddev);
    case Kind::orthogonal: {
      expect_matrix(shape.rank() >= 2);
      const auto n1 = static_cast<std::size_t>(shape[0]), n2 = static_cast<std::size_t>(n1 == 0 ? 0 : shape.count() / shape[0]);
      const std::size_t few = std::min(n1, n2), many = std::max(n1, n2);
      std::vector<double> rows = data::draw_normal(shape.count(), words[0], words[1], stream);
      orthonormalize(rows, few, many);
      std::vector<double> values(rows.size());
      for (std::size_t i = 0; i < n1; ++i) {
        for (std::size_t j = 0; j < n2; ++j) values[i * n2 + j] = gain * (n1 <= n2 ? rows[i * n2 + j] : rows[j * n1 + i]);
      }
      return from_doubles(dtype, shape, values).to(device);
    }
    case Kind::identity: {
      expect_matrix(shape.rank() == 2);
      std::vector<double> values(static_cast<std::size_t>(shape.count()));
      for (std::int64_t i = 0; i < std::min(shape[0], shape[1]); ++i) values[static_cast<std::size_t>(i * shape[1] + i)] = gain;
      return from_doubles(dtype, shape, values).to(device);
    }
    default:
      break;
  }
  const Fans fans = fans_of(initializer, shape);
  const double in = static_cast<double>(spec.fan_in);
  const double both = spec.fan_out > 0 ? in + static_cast<double>(spec.fan_out) : (fans.n1 + fans.n2) * fans.field;
  switch (initializer.kind) {
    case Kind::glorot_uniform:
      return uniform(gain * std::sqrt(6 / both));
    case Kind::glorot_normal:
      return normal(gain * std::sqrt(2 / both));
    case Kind::he_uniform:
      return uniform(gain * std::sqrt(6 / in));
    case Kind::he_normal:
      return normal(gain * std::sqrt(2 / in));
    case Kind::lecun_uniform:
      return uniform(gain * std::sqrt(3 / in));
    default:
      return normal(gain * std::sqrt(1 / in));
  }
}

}  // namespace

Tensor initialize(const Context& context, const Device& device, const ParameterSpec& spec, std::uint64_t seed, std::uint32_t stream) {
  if (spec.initial.defined()) return spec.initial;
  const auto key_of = [&](std::uint64_t block) { return Tensor::of<std::uint64_t>({seed, block}, {2}); };
  if (spec.block.rank() == 0 || spec.block == spec.shape) return draw_block(context, device, spec, spec.shape, key_of(0), stream);
  Tensor all = Tensor::empty(spec.dtype, spec.shape);
  const std::int64_t part = spec.block.count();
  for (std::int64_t at = 0; at + part <= all.count(); at += part) {
    const Tensor block = draw_block(context, device, spec, spec.block, key_of(static_cast<std::uint64_t>(at / part)), stream).to_host();
    if (spec.dtype == DType::f64) {
      std::copy_n(block.data<double>(), part, all.data<double>() + at);
    } else {
      std::copy_n(block.data<float>(), part, all.data<float>() + at);
    }
  }
  return all.to(device);
}

}  // namespace tenon::train
