// SPDX-License-Identifier: Apache-2.0
// dot, dotu: x'y. dotc: conj(x)'y. sdsdot: alpha + x'y, dsdot: x'y, both summed in f64.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const bool wide = t.is("sdsdot") || t.is("dsdot");
  const Ref x = t.vector("x", n), y = t.vector("y", n);
  t.may_share(y, x);
  if (wide && t.flag("cancels") != 0) {
    // 2^24 + 1 - 2^24 + 1 is 2 in f64, and 1 where f32 lost a one.
    std::vector<Number> values(static_cast<std::size_t>(n)), ones(values.size(), 1);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 4 == 0 ? 16777216 : i % 4 == 2 ? -16777216 : 1;
    t.fill(x, values);
    t.fill(y, ones);
  }
  const Trial::Scalar alpha = t.is("sdsdot") ? t.alpha() : Trial::Scalar{one, 0};
  const Ref result = t.result(t.is("dsdot") ? tenon_dtype{TENON_DTYPE_F64} : t.dtype());
  std::vector<Term> terms{{1, {x, t.is("dotc") ? std::uint32_t{TENON_CONJ_TRANS} : std::uint32_t{TENON_TRANS}}, {y}}};
  if (alpha.ref != one) terms.push_back({alpha, {one}});
  t.equals(result, terms, 0, wide ? epsilon(TENON_DTYPE_F64) : 0);
  if (!t.complex()) t.spreads_infinity();
}

std::vector<Flag> flags(const Line& line, tenon_dtype) {
  const std::string routine = line.routine;
  if (routine == "sdsdot" || routine == "dsdot") return {{"cancels", {0, 1}}};
  return {};
}

}  // namespace

Signature signature_dot() {
  return {.routines = {"dot", "dotu", "dotc", "sdsdot", "dsdot"},
          .layouts = false,
          .sizes = {"n"},
          .flags = flags,
          .build = build,
          .why = why_products};
}

}  // namespace tenon::conformance::blas
