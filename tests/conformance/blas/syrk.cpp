// SPDX-License-Identifier: Apache-2.0
// syrk: C = alpha A A' + beta C (trans none) or alpha A' A + beta C. herk: conj(A)' for A', alpha and beta real. syr2k, her2k: alpha A B' +
// alpha B A' + beta C, the second with conj(B)', conj(A)', conj(alpha) and beta real. One triangle of C.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n"), k = t.size("k");
  const std::uint32_t uplo = t.flag("uplo"), trans = t.flag("trans");
  const bool hermitian = t.is("herk") || t.is("her2k"), two = t.is("syr2k") || t.is("her2k");
  const std::uint32_t transposed = hermitian ? std::uint32_t{TENON_CONJ_TRANS} : std::uint32_t{TENON_TRANS};
  const std::uint32_t left = transposes(trans) ? transposed : std::uint32_t{TENON_NO_TRANS},
                      right = transposes(trans) ? std::uint32_t{TENON_NO_TRANS} : transposed;
  const auto operand = [&](const char* name) { return transposes(trans) ? t.matrix(name, k, n) : t.matrix(name, n, k); };
  const Ref a = operand("a"), b = two ? operand("b") : one;
  const Ref c = t.triangle("c", n, uplo, hermitian ? Meaning::hermitian : Meaning::symmetric, Storage::full, 0, Access::update);
  const Trial::Scalar alpha = t.alpha(hermitian && !two), beta = t.beta(hermitian);
  if (two) {
    const Number other = hermitian ? std::conj(alpha.value) : alpha.value;
    t.equals(c, {{alpha, {a, left}, {b, right}}, {other, {b, left}, {a, right}}}, beta);
  } else {
    t.equals(c, {{alpha, {a, left}, {a, right}}}, beta);
  }
}

std::vector<Flag> flags(const Line& line, tenon_dtype dtype) {
  const std::string routine = line.routine;
  if (routine == "herk" || routine == "her2k") return {{"uplo", both_triangles}, {"trans", {TENON_NO_TRANS, TENON_CONJ_TRANS}}};
  if (is_complex(dtype)) return {{"uplo", both_triangles}, {"trans", {TENON_NO_TRANS, TENON_TRANS}}};
  return {{"uplo", both_triangles}, {"trans", all_ops}};
}

}  // namespace

Signature signature_syrk() {
  return {.routines = {"syrk", "herk", "syr2k", "her2k"}, .sizes = {"n", "k"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
