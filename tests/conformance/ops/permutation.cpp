// SPDX-License-Identifier: Apache-2.0
// RandomPermutation: the bits are specified, so every backend has the oracle's.
#include "op_family.h"

#include <set>

namespace tenon::conformance {
namespace {

Variant drawn(std::int64_t n, std::uint32_t stream = 42) {
  return {fmt::format("stream={}", stream), {key()}, {result({n})}, tenon_attributes_random{.stream = stream, .dtype = i64}};
}

std::string each_once(const Variant&, tenon_dtype, const std::vector<Array>&, const std::vector<Array>& outputs) {
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
    const auto index = outputs[0].get<std::int64_t>(i);
    if (index < 0 || index >= outputs[0].count()) return fmt::format("element {} is {}", i, index);
    if (!seen.insert(index).second) return fmt::format("{} is there twice", index);
  }
  return {};
}

/// A different seed, step or stream gives a different order.
void seeds_reproduce(CaseContext& context, tenon_dtype dtype) {
  const auto draw = [&](double seed, double step, std::uint32_t stream) {
    return context.run(net_of(line_of(TENON_OP_RandomPermutation), drawn(1000, stream), dtype, {Array(u64, {2}, {seed, step})}))[0];
  };
  const Array first = draw(1, 1, 1);
  if (!first.same_bits(draw(1, 1, 1))) throw Failure("the same seed, step and stream give a different order the second time");
  const Array others[] = {draw(2, 1, 1), draw(1, 2, 1), draw(1, 1, 2)};
  const char* const names[] = {"seed", "step", "stream"};
  for (int i = 0; i < 3; ++i) {
    if (first.same_bits(others[i])) throw Failure(fmt::format("a different {} gives the same order", names[i]));
  }
}

}  // namespace

std::vector<OpCase> cases_permutation() {
  // The golden orders come from an independent implementation.
  return {{
      .op = TENON_OP_RandomPermutation,
      .variants = {drawn(7), drawn(1), drawn(0), drawn(64), drawn(1000, 0xFFFFFFFFu), drawn(sized(200003, 2003))},
      .bound = specified,
      .oracle = Oracle::same_dtype,
      .also = {{"each_once", each_once}},
      .golden = {{"zero_key", drawn(8, 0), {{0, 0}}, {{3, 5, 4, 2, 6, 7, 1, 0}}},
                 {"large_seed", drawn(12, 42), {{0xfedcba9876543, 7}}, {{11, 4, 3, 6, 1, 5, 10, 9, 2, 0, 7, 8}}}},
      .extras = {{"seeds_reproduce", seeds_reproduce}},
  }};
}

}  // namespace tenon::conformance
