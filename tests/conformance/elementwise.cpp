// SPDX-License-Identifier: Apache-2.0
#include "elementwise.h"

namespace tenon::conformance {
namespace {

template <class Word>
void spread(Array& array, Random& random) {
  const Word step = static_cast<Word>(static_cast<Word>(~Word{0}) / static_cast<std::uint64_t>(array.count()));
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const Word first = static_cast<Word>(static_cast<std::uint64_t>(i) * step);
    array.put(i, static_cast<Word>(first + (step > 1 ? random.bits() % step : 0)));
  }
}

}  // namespace

Array all_magnitudes(tenon_dtype dtype, std::uint64_t seed) {
  Random random(seed);
  Array array(dtype, {is_narrow(dtype) ? 65536 : sized(400009, 20011)});  // every number of the narrow types
  if (is_narrow(dtype)) spread<std::uint16_t>(array, random);
  if (dtype == TENON_DTYPE_F32) spread<std::uint32_t>(array, random);
  if (dtype == TENON_DTYPE_F64) spread<std::uint64_t>(array, random);
  return array;
}

void check_magnitudes(CaseContext& context, tenon_op op, tenon_dtype dtype, const AttributeBytes& attributes, const Bound& bound) {
  const Array x = all_magnitudes(dtype, seed_for(context.seed, line_of(op).stem));
  const Variant variant = of_shape(x.shape(), {}, attributes);
  const auto got = context.run(net_of(line_of(op), variant, dtype, {x}));
  const auto expected = context.judge(net_of(line_of(op), variant, TENON_DTYPE_F64, {x.as(TENON_DTYPE_F64)}));
  const std::string wrong = compare(expected[0], got[0], bound);
  if (wrong.empty()) return;
  // Report the operand, which says more than the index.
  std::int64_t first = 0;
  const auto one = [&](const Array& from, std::int64_t i) {
    Array element(from.dtype(), {1});
    element.set(0, from.at(i));
    return element;
  };
  while (first + 1 < x.count() && compare(one(expected[0], first), one(got[0], first), bound).empty()) ++first;
  throw Failure(fmt::format("at x = {}: {}", x.str(first), wrong));
}

}  // namespace tenon::conformance
