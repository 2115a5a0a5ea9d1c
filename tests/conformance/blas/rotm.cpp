// SPDX-License-Identifier: Apache-2.0
// rotm: x, y = h11 x + h12 y, h21 x + h22 y; param: flag, h11, h21, h12, h22.
#include "blas.h"

#include <limits>

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const std::int64_t flag = t.draw("flag", {-2, -1, 0, 1});
  long double h11 = 0.75L, h21 = -0.5L, h12 = 1.25L, h22 = -0.375L;
  // Elements that the flag implies are not read.
  constexpr long double nan = std::numeric_limits<long double>::quiet_NaN();
  std::vector<Number> param{static_cast<long double>(flag), h11, h21, h12, h22};
  if (flag == 0 || flag == -2) {
    h11 = h22 = 1;
    param[1] = param[4] = nan;
  }
  if (flag == 1) {
    h12 = 1;
    h21 = -1;
    param[2] = param[3] = nan;
  }
  if (flag == -2) {
    h12 = h21 = 0;
    param[2] = param[3] = nan;
  }
  const Ref x = t.vector("x", n, Access::update), y = t.vector("y", n, Access::update);
  t.numbers("param", param, t.dtype());
  t.equals(x, {{h11, {x}}, {h12, {y}}});
  t.equals(y, {{h21, {x}}, {h22, {y}}});
}

}  // namespace

Signature signature_rotm() {
  return {.routines = {"rotm"}, .layouts = false, .sizes = {"n"}, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
