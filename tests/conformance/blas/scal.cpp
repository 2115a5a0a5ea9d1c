// SPDX-License-Identifier: Apache-2.0
// scal: x = alpha x. rscal: alpha is real. Nothing is skipped: 0 NaN = NaN.
#include "blas.h"

#include <limits>

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  constexpr long double nan = std::numeric_limits<long double>::quiet_NaN();
  const std::int64_t n = t.size("n");
  const Ref x = t.forward_vector("x", n, Access::update);
  if (t.flag("zero_times_nan") != 0) {
    t.fill(x, std::vector<Number>(static_cast<std::size_t>(n), {nan, nan}));
    t.numbers("alpha", {0}, t.is("rscal") ? real_of(t.dtype()) : t.dtype());
    t.expect([=](const Trial& trial) {
      const Dense after = trial.after(x);
      for (std::int64_t i = 0; i < n; ++i) {
        const Wrong text = compare("0 NaN", nan, after.at(i), 0);
        if (!text.empty()) return text;
      }
      return Wrong();
    });
  } else {
    const Trial::Scalar factor = t.alpha(t.is("rscal"));
    t.equals(x, {{factor, {x}}});
  }
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"zero_times_nan", {0, 1}}};
}

}  // namespace

Signature signature_scal() {
  return {.routines = {"scal", "rscal"}, .layouts = false, .sizes = {"n"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
