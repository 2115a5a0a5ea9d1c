// SPDX-License-Identifier: Apache-2.0
// rot: x, y = c x + s y, c y - conj(s) x; c is real.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  // Sixty-fourths are exact in every dtype. Nothing below needs c^2 + |s|^2 = 1.
  const auto c = static_cast<long double>(t.draw("64c", {64, -40, 24, 0})) / 64;
  const auto s_re = static_cast<long double>(t.draw("64s", {0, 33, -50, 64})) / 64;
  const auto s_im = t.complex() ? static_cast<long double>(t.draw("64im_s", {0, 20, -61})) / 64 : 0;
  const Number s(s_re, s_im);
  const Ref x = t.vector("x", n, Access::update), y = t.vector("y", n, Access::update);
  t.numbers("c", {c}, real_of(t.dtype()));
  t.numbers("s", {s}, t.dtype());
  t.equals(x, {{c, {x}}, {s, {y}}});
  t.equals(y, {{c, {y}}, {-std::conj(s), {x}}});
}

}  // namespace

Signature signature_rot() {
  return {.routines = {"rot"}, .layouts = false, .sizes = {"n"}, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
