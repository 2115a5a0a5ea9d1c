#include "train/initializers.h"

#include <fmt/core.h>

#include <cmath>

namespace tenon::train {
namespace {

/// The first two dimensions and the product of the rest: a kernel's inputs, outputs, and receptive field.
struct Fans {
  double n1 = 1, n2 = 1, field = 1;
};

Fans fans_of(const Initializer& initializer, const Shape& shape) {
  if (shape.rank() == 0)
    throw Error(
        fmt::format("initializer {}: a scalar has no fan; use zeros, ones, constant, uniform or normal", name_of(initializer.kind)));
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

}  // namespace

Tensor initialize(const Context& context, const Device& device, const Initializer& initializer, DType dtype, const Shape& shape,
                  std::int64_t fan_in, std::uint64_t seed, std::uint32_t stream) {
  using Kind = Initializer::Kind;
  const auto fill = [&](double value) {
    Tensor host = Tensor::empty(dtype, shape);
    if (dtype == DType::f64) {
      std::fill_n(host.data<double>(), host.count(), value);
    } else {
      std::fill_n(host.data<float>(), host.count(), static_cast<float>(value));
    }
    return host.to(device);
  };
  const Tensor key = Tensor::of<std::uint64_t>({seed, 0}, {2});
  const auto draw = [&](tenon_op op, double a, double b) {
    tenon_attributes_random attributes{};
    attributes.stream = stream;
    attributes.a = a;
    attributes.b = b;
    attributes.dtype = static_cast<tenon_dtype>(dtype);
    return context.apply(device, op, {key}, Attributes::of(attributes), {.name = {}, .shape = shape}).front();
  };
  const auto uniform = [&](double limit) { return draw(TENON_OP_RandomUniform, -limit, limit); };
  const auto normal = [&](double deviation) { return draw(TENON_OP_RandomNormal, 0, deviation); };
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
      return uniform(gain / std::sqrt(static_cast<double>(fan_in)));
    default:
      break;
  }
  const Fans fans = fans_of(initializer, shape);
  const double both = (fans.n1 + fans.n2) * fans.field, in = fans.n1 * fans.field;
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

}  // namespace tenon::train
