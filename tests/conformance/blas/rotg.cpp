// SPDX-License-Identifier: Apache-2.0
// rotg: [c s; -conj(s) c] [a; b] = [r; 0], c real, c^2 + |s|^2 = 1; judged by that algebra. a receives r; for real numbers b receives z,
// which encodes c and s.
#include "blas.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::conformance::blas {
namespace {

/// Recovers c and s from z: z = 1: 0 and 1; |z| < 1: s = z; else c = 1 / z.
Wrong judge_z(long double z, long double c, long double s, long double bound) {
  const long double expect_c = z == 1 ? 0 : std::fabs(z) < 1 ? std::sqrt((1 - z) * (1 + z)) : 1 / z;
  const long double expect_s = z == 1 ? 1 : std::fabs(z) < 1 ? z : std::sqrt((1 - expect_c) * (1 + expect_c));
  // The square root turns an error of its small argument into its root.
  const long double loose = std::sqrt(bound);
  Wrong text = compare("c from z", expect_c, c, std::fabs(z) < 1 ? loose : bound);
  return text.empty() ? compare("s from z", expect_s, s, std::fabs(z) < 1 ? bound : loose) : text;
}

void build(Trial& t) {
  const tenon_dtype real = real_of(t.dtype());
  const auto top = static_cast<long double>(largest(real)) / 8, bottom = static_cast<long double>(smallest_normal(real)) * 8;
  const auto unit = [&] { return static_cast<long double>(t.random().uniform(-1, 1)); };
  const auto any = [&](long double size) { return Number(unit() * size, t.complex() ? unit() * size : 0); };
  Number a = any(1), b = any(1);
  const std::uint32_t which = t.flag("case");
  if (which == 0) a = b = 0;
  if (which == 1) a = 0;
  if (which == 2) b = 0;
  if (which == 3) a = any(top), b = any(top);
  if (which == 4) a = any(bottom), b = any(bottom);
  if (which == 5) a = any(top), b = any(bottom);
  if (which == 6) a = any(bottom), b = any(top);
  if (which == 7) a = {top, t.complex() ? -top : 0}, b = {-top, t.complex() ? top : 0};
  if (which == 8) b = a;
  if (which == 9) a = 0, b = any(top);
  const Ref a_at = t.numbers("a", {a}, t.dtype(), Access::update), b_at = t.numbers("b", {b}, t.dtype(), Access::update);
  const Ref c_at = t.numbers("c", {0}, real, Access::write), s_at = t.numbers("s", {0}, t.dtype(), Access::write);
  t.expect([=](const Trial& trial) {
    const Number x = trial.before({a_at}).at(0), y = trial.before({b_at}).at(0);  // as rounded to the dtype
    const Number c = trial.after(c_at).at(0), s = trial.after(s_at).at(0), r = trial.after(a_at).at(0);
    // A few roundings of each of c, s and r.
    const long double size = std::abs(x) + std::abs(y), step = 16 * static_cast<long double>(epsilon(real)),
                      bound = step * size + 16 * static_cast<long double>(smallest(real));
    Wrong text = compare("c^2 + |s|^2", 1, c * c + std::norm(s), step);
    if (text.empty()) text = compare("c a + s b", r, c * x + s * y, bound);
    if (text.empty()) text = compare("c b - conj(s) a", 0, c * y - std::conj(s) * x, bound);
    if (text.empty() && trial.complex() && !(c.real() >= 0)) text = fmt::format("c is {}, expected at least 0", c.real());
    if (text.empty() && !trial.complex()) text = judge_z(trial.after(b_at).at(0).real(), c.real(), s.real(), step);
    return text;
  });
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"case", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}};
}

}  // namespace

Signature signature_rotg() {
  return {.routines = {"rotg"},
          .layouts = false,
          .sizes = {},
          .flags = flags,
          .build = build,
          .why =
              "c, s and r are a few roundings each: c^2 + |s|^2 = 1, c a + s b = r and c b - conj(s) a = 0 hold within 16 epsilon of their "
              "terms, c of complex numbers is at least 0, and c and s can be recovered from z."};
}

}  // namespace tenon::conformance::blas
