// SPDX-License-Identifier: Apache-2.0
// ops/random.cpp - random tensors: a function of key, stream and element index, bit-identical on every backend.
#include <fmt/format.h>

#include <tenon/functions.h>
#include <cmath>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

const tenon_attributes_random& infer(Inference& at) {
  at.expect_inputs(1, 1);
  if (at.dtype(0) != DType::u64 || at.shape(0) != Shape{2}) at.fail(fmt::format("expected key as u64(2) (seed, step), got {}", at.str(0)));
  const auto& attributes = at.attributes.as<tenon_attributes_random>();
  const auto dtype = static_cast<DType>(attributes.dtype);
  if (!is_floating(dtype)) at.fail(fmt::format("expected a floating dtype for the result, got {}", name_of(dtype)));
  if (!at.options.shape) at.fail("the result's shape is not given (NodeOptions::shape)");
  at.output(dtype, *at.options.shape);
  return attributes;
}

void infer_uniform(Inference& at) {
  const tenon_attributes_random& a = infer(at);
  if (!(a.a <= a.b) || !std::isfinite(a.b - a.a)) at.fail(fmt::format("the range is [{}, {}), expected finite low <= high", a.a, a.b));
}

void infer_normal(Inference& at) {
  const tenon_attributes_random& a = infer(at);
  if (!std::isfinite(a.a)) at.fail(fmt::format("mean is {}, expected a finite number", a.a));
  if (!(a.b >= 0) || !std::isfinite(a.b)) at.fail(fmt::format("deviation is {}, expected a finite number >= 0", a.b));
}

void infer_bernoulli(Inference& at) {
  const tenon_attributes_random& a = infer(at);
  if (!(a.a >= 0 && a.a <= 1)) at.fail(fmt::format("probability is {}, expected 0 <= probability <= 1", a.a));
}

}  // namespace

extern const OpRules rules_random_uniform, rules_random_normal, rules_random_bernoulli;
const OpRules rules_random_uniform{"y uniform in [low, high), a function of key, stream and index.", infer_uniform, PrecisionClass::fp32,
                                   per_element<0>};
const OpRules rules_random_normal{"y normal with a mean and a standard deviation, a function of key, stream and index.", infer_normal,
                                  PrecisionClass::fp32, per_element<0>};
const OpRules rules_random_bernoulli{"y = 1 with a probability, else 0, a function of key, stream and index.", infer_bernoulli,
                                     PrecisionClass::fp32, per_element<0>};

}  // namespace graph

namespace ops {
namespace {

Value random(tenon_op op, Value key, DType dtype, const Shape& shape, std::uint32_t stream, double a, double b) {
  tenon_attributes_random attributes{};
  attributes.stream = stream;
  attributes.a = a;
  attributes.b = b;
  attributes.dtype = static_cast<tenon_dtype>(dtype);
  return graph::apply_op(op, {key}, Attributes::of(attributes), {.name = {}, .shape = shape});
}

}  // namespace

Value random_uniform(Value key, DType dtype, const Shape& shape, std::uint32_t stream, double low, double high) {
  return random(TENON_OP_RandomUniform, key, dtype, shape, stream, low, high);
}
Value random_normal(Value key, DType dtype, const Shape& shape, std::uint32_t stream, double mean, double deviation) {
  return random(TENON_OP_RandomNormal, key, dtype, shape, stream, mean, deviation);
}
Value random_bernoulli(Value key, DType dtype, const Shape& shape, std::uint32_t stream, double probability) {
  return random(TENON_OP_RandomBernoulli, key, dtype, shape, stream, probability, 0);
}

}  // namespace ops
}  // namespace tenon
