// SPDX-License-Identifier: Apache-2.0
#include "locality.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "instance.h"

namespace tenon::conformance {
namespace {

/// Larger than all operands, so that it is also the maximum of each window that has it.
constexpr double finite = 64;

bool same_bits(const Array& a, const Array& b, std::int64_t i) {
  const std::int64_t size = a.element_size();
  return std::memcmp(a.bytes() + i * size, b.bytes() + i * size, static_cast<std::size_t>(size)) == 0;
}

}  // namespace

void expect_locality(const CaseContext& context, const OpLine& line, const Variant& variant, tenon_dtype dtype) {
  const std::vector<Array> inputs = fill(variant, dtype, seed_for(context.seed, variant.label + "/locality"));
  const auto with = [&](std::int64_t element, double value) {
    std::vector<Array> changed = inputs;
    changed[0].set(element, value);
    return context.run(net_of(line, variant, dtype, changed))[0];
  };
  const Array before = context.run(net_of(line, variant, dtype, inputs))[0];
  const std::int64_t count = inputs[0].count();
  for (const std::int64_t element : {std::int64_t{0}, count / 3, count / 2, count - 1}) {
    const Array reached = with(element, finite);
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      const Array after = with(element, value);
      for (std::int64_t i = 0; i < before.count(); ++i) {
        if (same_bits(before, after, i) || !same_bits(before, reached, i)) continue;
        throw Failure(
            fmt::format("element {} of x is {}, and result {} becomes {} instead of {}, though a finite number there does not "
                        "change it ({}, {})",
                        element, value, i, after.str(i), before.str(i), variant.label, describe(inputs)));
      }
    }
  }
}

}  // namespace tenon::conformance
