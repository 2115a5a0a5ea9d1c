// SPDX-License-Identifier: Apache-2.0
// ops/permutation.cpp - random permutations, a function of key and stream that is the same on every backend.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  if (at.dtype(0) != DType::u64 || at.shape(0) != Shape{2}) at.fail(fmt::format("expected key as u64(2) (seed, step), got {}", at.str(0)));
  const auto& attributes = at.attributes.as<tenon_attributes_random>();
  if (attributes.dtype != TENON_DTYPE_I64) {
    at.fail(fmt::format("expected i64 for the result, got {}", name_of(static_cast<DType>(attributes.dtype))));
  }
  if (!at.options.shape) at.fail("the result's shape is not given (NodeOptions::shape)");
  if (at.options.shape->rank() != 1) at.fail(fmt::format("expected a result of rank 1, got {}", at.options.shape->str()));
  at.output(DType::i64, *at.options.shape);
}

}  // namespace

extern const OpRules rules_random_permutation;
const OpRules rules_random_permutation{"y = 0 .. n-1 in random order, a function of key and stream.", infer, PrecisionClass::fp32,
                                       per_element<0>};

}  // namespace graph

namespace ops {

Value random_permutation(Value key, std::int64_t n, std::uint32_t stream) {
  if (n < 0) throw Error(fmt::format("random_permutation: n is {}, expected 0 or more", n));
  tenon_attributes_random attributes{};
  attributes.stream = stream;
  attributes.dtype = TENON_DTYPE_I64;
  return graph::apply_op(TENON_OP_RandomPermutation, {key}, Attributes::of(attributes), {.name = {}, .shape = Shape{n}});
}

}  // namespace ops
}  // namespace tenon
