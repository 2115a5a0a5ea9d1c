// SPDX-License-Identifier: Apache-2.0
// BLAS level 1 (blas/level1.cl).
#include "blas/routine.h"

namespace tenon::opencl {
namespace blas {
namespace {

/// A kernel over pairs x(i), y(i), and further arguments.
template <class T, class P, class... More>
void over_pairs(const P& p, const char* kernel, const More&... more) {
  const Vector x = vector(p.stream, p.x, p.n, p.incx), y = vector(p.stream, p.y, p.n, p.incy);
  launch<T>(p.stream, sources::level1, kernel, p.n, p.n, x, y, more...);
}

template <class T>
void scale(const arguments::scal<T>& p) {
  launch<T>(p.stream, sources::level1, "scal", p.n, p.n, vector(p.stream, p.x, p.n, p.incx), p.alpha);
}

template <class T>
void rotg(const arguments::rotg<T>& p) {
  Numbers a(p.stream, p.a, sizeof(T)), b(p.stream, p.b, sizeof(T)), c(p.stream, p.c, sizeof(sdk::Real<T>)), s(p.stream, p.s, sizeof(T));
  launch<T, 1>(p.stream, sources::level1, "rotg", 1, a.place(), b.place(), c.place(), s.place());
  for (Numbers* const number : {&a, &b, &c, &s}) number->finish();
}
template <class T>
void rotmg(const arguments::rotmg<T>& p) {
  Numbers d1(p.stream, p.d1, sizeof(T)), d2(p.stream, p.d2, sizeof(T)), x1(p.stream, p.x1, sizeof(T)), y1(p.stream, p.y1, sizeof(T)),
      param(p.stream, p.param, 5 * sizeof(T));
  launch<T, 1>(p.stream, sources::level1, "rotmg", 1, d1.place(), d2.place(), x1.place(), y1.place(), param.place());
  for (Numbers* const number : {&d1, &d2, &x1, &param}) number->finish();
}

/// Two kernels: groups of work-items write partial results, which one group combines. At least eight elements for each work-item, so that
/// a further group is worth its partial result.
template <class T, class... More>
void reduce(Stream& stream, const std::string& kernel, std::int64_t n, const Vector& x, const Vector& y, const tenon_scalar& to,
            std::size_t size_bytes, const More&... more) {
  constexpr std::int64_t size = Launch::group_size, partial_bytes = 16;
  const std::int64_t groups = std::min((n + 8 * size - 1) / (8 * size), size);
  const Temporary partials(stream, groups * partial_bytes);
  Numbers result(stream, to, size_bytes);
  launch<T>(stream, sources::level1, kernel.c_str(), groups * size, n, x, y, partials.place());
  launch<T>(stream, sources::level1, (kernel + "_total").c_str(), size, static_cast<std::int32_t>(groups), partials.place(), result.place(),
            more...);
  result.finish();
}
template <class T, class... More>
void reduce(const arguments::dot<T>& p, const char* kernel, std::size_t size_bytes, const More&... more) {
  const Vector x = vector(p.stream, p.x, p.n, p.incx), y = vector(p.stream, p.y, p.n, p.incy);
  reduce<T>(p.stream, kernel, p.n, x, y, p.result, size_bytes, more...);
}
template <class T>
void reduce(const arguments::reduce<T>& p, const char* kernel, std::size_t size_bytes) {
  const Vector x = vector(p.stream, p.x, p.n, p.incx);
  reduce<T>(p.stream, kernel, p.n, x, x, p.result, size_bytes);
}

}  // namespace
}  // namespace blas

TENON_OPENCL_BLAS(rotg, rotg(p))
TENON_OPENCL_BLAS(rotmg, rotmg(p))
TENON_OPENCL_BLAS(rot, over_pairs<T>(p, "rot", p.c, p.s))
TENON_OPENCL_BLAS(rotm, over_pairs<T>(p, "rotm", Numbers(p.stream, p.param, 5 * sizeof(T)).place()))
TENON_OPENCL_BLAS(swap, over_pairs<T>(p, "swap_vectors"))
TENON_OPENCL_BLAS(scal, scale(p))
TENON_OPENCL_BLAS(rscal, scale(p))
TENON_OPENCL_BLAS(copy, over_pairs<T>(p, "copy_vector"))
TENON_OPENCL_BLAS(axpy, over_pairs<T>(p, "axpy", p.alpha))
TENON_OPENCL_BLAS(axpby, over_pairs<T>(p, "axpby", p.alpha, p.beta))
TENON_OPENCL_BLAS(dot, reduce(p, "dotu", sizeof(T)))
TENON_OPENCL_BLAS(dotu, reduce(p, "dotu", sizeof(T)))
TENON_OPENCL_BLAS(dotc, reduce(p, "dotc", sizeof(T)))
TENON_OPENCL_BLAS(sdsdot, reduce(p, "sdsdot", sizeof(float), p.alpha))
TENON_OPENCL_BLAS(dsdot, reduce(p, "dsdot", sizeof(double)))
TENON_OPENCL_BLAS(nrm2, reduce(p, "nrm2", sizeof(sdk::Real<T>)))
TENON_OPENCL_BLAS(asum, reduce(p, "asum", sizeof(sdk::Real<T>)))
TENON_OPENCL_BLAS(iamax, reduce(p, "iamax", sizeof(std::int64_t)))
TENON_OPENCL_BLAS(iamin, reduce(p, "iamin", sizeof(std::int64_t)))

}  // namespace tenon::opencl
