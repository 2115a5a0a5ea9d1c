// SPDX-License-Identifier: Apache-2.0
// ops/concat.cpp - joins tensors along an axis, and splits them.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <algorithm>

#include "graph/op.h"
#include "ops/axis_attributes.h"
#include "text/counted.h"

namespace tenon {
namespace graph {
namespace {

/// Resolves the axis and returns it.
std::size_t normalise_axis(Inference& at) {
  auto attributes = at.attributes.as<tenon_attributes_axis>();
  at.expect_flag(attributes.keepdims, "keepdims");
  attributes.axis = at.axis(attributes.axis, 0);
  attributes.keepdims = 0;
  at.attributes = Attributes::of(attributes);
  return static_cast<std::size_t>(attributes.axis);
}

void infer_concat(Inference& at) {
  const std::size_t count = at.input_count();
  if (count == 0) at.fail("expected at least one operand, got none");
  at.expect_inputs(count, count);
  const std::size_t axis = normalise_axis(at);
  Shape y = at.shape(0);
  for (std::size_t i = 1; i < count; ++i) {
    at.expect_same_dtype(0, i);
    Shape other = at.shape(i);
    const std::int64_t size = other.rank() == y.rank() ? other[axis] : -1;
    if (size >= 0) other.set(axis, y[axis]);
    if (other != y) {
      at.fail(fmt::format("expected equal sizes except along axis {}, got operand 0 {}{}, operand {} {}{}", axis, name_of(at.dtype(0)),
                          at.shape(0).str(), i, name_of(at.dtype(i)), at.shape(i).str()));
    }
    std::int64_t sum = 0;
    if (__builtin_add_overflow(y[axis], size, &sum)) at.fail(fmt::format("the sum of the sizes along axis {} overflows 64 bits", axis));
    y.set(axis, sum);
  }
  at.output(at.dtype(0), y);
}

/// Elements [begin, begin + size) along an axis.
Value part_of(Value x, std::size_t axis, std::int64_t begin, std::int64_t size) {
  return ops::slice(x, static_cast<std::int64_t>(axis), begin, begin + size);
}

/// Each operand gets its slice of dy; only needed slices are created.
void concat_gradient(Gradient& at) {
  const auto axis = static_cast<std::size_t>(at.attributes.as<tenon_attributes_axis>().axis);
  std::int64_t begin = 0;
  for (std::size_t i = 0; at.input(i).present(); ++i) {
    const std::int64_t size = at.input(i).shape()[axis];
    if (at.needs(i)) at.set(i, part_of(at.dy(), axis, begin, size));
    begin += size;
  }
}

void infer_split(Inference& at) {
  at.expect_inputs(1, 1);
  const std::size_t axis = normalise_axis(at);
  const std::vector<std::int64_t>& sizes = at.options.sizes;
  if (sizes.empty()) at.fail("the sizes of the results are not given (NodeOptions::sizes)");
  std::int64_t rest = at.shape(0)[axis];
  Shape y = at.shape(0);
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > rest) {
      at.fail(fmt::format("the sizes ({}) do not add up to axis {} of {}", fmt::join(sizes, ","), axis, at.str(0)));
    }
    rest -= size;
    y.set(axis, size);
    at.output(at.dtype(0), y);
  }
  if (rest != 0)
    at.fail(fmt::format("the sizes ({}) do not add up to axis {} of {}, {} left", fmt::join(sizes, ","), axis, at.str(0),
                        counted(rest, "element is", "elements are")));
}

/// Joins the gradients of the parts; absent ones count as zeros.
void split_gradient(Gradient& at) {
  std::vector<Value> parts;
  for (std::size_t i = 0; i < at.output_count(); ++i) {
    parts.push_back(at.dy(i));
    if (!parts.back().present()) parts.back() = ops::expand(scalar(at.graph, at.input(0).dtype(), 0), at.output(i).shape());
  }
  at.set(0, ops::concat(parts, at.attributes.as<tenon_attributes_axis>().axis));
}

}  // namespace

extern const OpRules rules_concat, rules_split;
const OpRules rules_concat{"y = the operands joined along axis.", infer_concat, PrecisionClass::inherits, per_element<0>, concat_gradient};
const OpRules rules_split{"The results are consecutive parts of x along axis; their sizes add up to that of x.", infer_split,
                          PrecisionClass::inherits, per_element<0>, split_gradient};

}  // namespace graph

namespace ops {

Value concat(const std::vector<Value>& values, std::int64_t axis) {
  return values.size() == 1 ? values[0] : graph::apply_op(TENON_OP_Concat, values, graph::axis_attributes(axis));
}

Value stack(const std::vector<Value>& values, std::int64_t axis) {
  std::vector<Value> wider;
  for (const Value value : values) {
    if (!value.present() || value.shape() != values[0].shape()) {
      throw Error(fmt::format("stack: expected values of one shape, got {} and {}", values[0].shape().str(),
                              value.present() ? value.shape().str() : "an absent one"));
    }
    wider.push_back(unsqueeze(value, {axis}));
  }
  return concat(wider, axis);
}

std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  return x.graph().apply(TENON_OP_Split, {x}, graph::axis_attributes(axis), {.name = {}, .shape = {}, .sizes = sizes});
}

}  // namespace ops
}  // namespace tenon
