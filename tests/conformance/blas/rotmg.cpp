// SPDX-License-Identifier: Apache-2.0
// rotmg: H [x1; y1] = [x1'; 0] and H' diag(d') H = diag(d), judged by that algebra; d1 < 0: H, d' and x1' are 0. param: flag, h11, h21,
// h12, h22.
#include "blas.h"

#include <cmath>

namespace tenon::conformance::blas {
namespace {

struct Start {
  long double d1, d2, x1, y1;
};

void build(Trial& t) {
  static constexpr Start starts[] = {{1, 1, 1, 1},
                                     {1, 2, 3, 0},
                                     {0.5L, 0.25L, 1, 3},
                                     {3, 0.5L, -2, 0.25L},
                                     {-1, 1, 1, 1},
                                     {0, 1, 1, 1},
                                     {1, 0, 1, 1},
                                     {1, 1, 0, 2},
                                     {1e-10L, 2, 1, 1e-6L},
                                     {1e10L, 1, 1, 1},
                                     {1, 1e10L, 1, 3},
                                     {1e-9L, 1e-9L, 7, 2},
                                     {1e12L, 1e-12L, 1, 1e3L},
                                     {2, -0.25L, 1, 0.5L},
                                     {1e9L, 1e9L, 1, 1e-3L}};
  Start start = starts[0];
  const std::uint32_t which = t.flag("case");
  if (which < std::size(starts)) {
    start = starts[which];
  } else {
    const auto any = [&](double low) { return static_cast<long double>(t.random().uniform(low, 2)); };
    start = {any(0.01), any(0.01), any(-2), any(-2)};
  }
  const Ref d1 = t.numbers("d1", {start.d1}, t.dtype(), Access::update), d2 = t.numbers("d2", {start.d2}, t.dtype(), Access::update);
  const Ref x1 = t.numbers("x1", {start.x1}, t.dtype(), Access::update), y1 = t.numbers("y1", {start.y1}, t.dtype());
  const Ref param = t.numbers("param", {0, 0, 0, 0, 0}, t.dtype(), Access::update);
  t.expect([=](const Trial& trial) {
    const auto was = [&](Ref ref) { return trial.before({ref}).at(0).real(); };
    const auto is = [&](Ref ref) { return trial.after(ref).at(0).real(); };
    const Dense h = trial.after(param);
    const long double flag = h.re[0];
    long double h11 = h.re[1], h21 = h.re[2], h12 = h.re[3], h22 = h.re[4];
    if (flag != -2 && flag != -1 && flag != 0 && flag != 1) return Wrong("the flag is none of -2, -1, 0, 1");
    if (flag == -2) h11 = h22 = 1, h12 = h21 = 0;
    if (flag == 0) h11 = h22 = 1;
    if (flag == 1) h12 = 1, h21 = -1;
    // A few roundings of each number.
    const long double step = 32 * static_cast<long double>(epsilon(trial.dtype()));
    const auto holds = [&](const char* what, long double expected, long double p, long double q) {
      return compare(what, expected, p + q, step * (std::fabs(p) + std::fabs(q) + std::fabs(expected)));
    };
    if (was(d1) < 0) {
      Wrong text = flag == -1 ? "" : "expected the flag -1 for d1 < 0";
      for (const long double zero : {h11, h21, h12, h22, is(d1), is(d2), is(x1)}) {
        if (text.empty()) text = compare("a number of H, d or x1 for d1 < 0", 0, zero, 0);
      }
      return text;
    }
    Wrong text = holds("h11 x1 + h12 y1", is(x1), h11 * was(x1), h12 * was(y1));
    if (was(d2) * was(y1) == 0) return text;  // H = 1, whatever y1 is
    // The second component counts with the weight d2'.
    if (text.empty() && is(d2) != 0) text = holds("h21 x1 + h22 y1", 0, h21 * was(x1), h22 * was(y1));
    if (text.empty()) text = holds("d1' h11^2 + d2' h21^2", was(d1), is(d1) * h11 * h11, is(d2) * h21 * h21);
    if (text.empty()) text = holds("d1' h12^2 + d2' h22^2", was(d2), is(d1) * h12 * h12, is(d2) * h22 * h22);
    if (text.empty()) text = holds("d1' h11 h12 + d2' h21 h22", 0, is(d1) * h11 * h12, is(d2) * h21 * h22);
    return text;
  });
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"case", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}}};
}

}  // namespace

Signature signature_rotmg() {
  return {
      .routines = {"rotmg"},
      .layouts = false,
      .sizes = {},
      .flags = flags,
      .build = build,
      .why = "Each number is a few roundings: H [x1; y1] = [x1'; 0] and H' diag(d') H = diag(d) hold within 32 epsilon of their terms."};
}

}  // namespace tenon::conformance::blas
