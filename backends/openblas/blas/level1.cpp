// SPDX-License-Identifier: Apache-2.0
// level1.cpp - vectors. Implements here what OpenBLAS 0.3.21 lacks, or rounds or overflows where the reference BLAS does not: rotg, dsdot,
// sdsdot, rot with a complex s, scal by 0.
#include <limits>

#include "cblas.h"
#include "split.h"

namespace tenon::openblas {
namespace {

/// The smallest number of elements worth handing to a thread: 128 KiB.
template <class T>
constexpr double smallest_piece = 131072.0 / sizeof(T);

template <class T>
std::int64_t pieces_of(const Threads& threads, std::int64_t n) {
  return piece_count(threads, static_cast<double>(n), smallest_piece<T>);
}

template <class P>
void check_xy(const char* routine, const P& p) {
  check_sizes(routine, {{"n", p.n},
                        {"incx", p.incx},
                        {"incy", p.incy},
                        {"n * incx", offset_of_first(p.n, p.incx)},
                        {"n * incy", offset_of_first(p.n, p.incy)}});
}

/// Calls body(n, x, y) on pieces of both vectors.
template <class T, class P, class Body>
void on_pieces(const P& p, const Body& body) {
  for_pieces(Threads(p), p.n, pieces_of<T>(Threads(p), p.n), 16, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    body(to_int(end - begin), slice(p.x, p.n, p.incx, begin, end), slice(p.y, p.n, p.incy, begin, end));
  });
}

// Rotations, scaled as in Anderson: Algorithm 978, Safe scaling in the Level 1 BLAS (2017), and in the reference BLAS 3.10.
template <class R>
constexpr R safe_min = std::numeric_limits<R>::min();
template <class R>
constexpr R safe_max = R(1) / std::numeric_limits<R>::min();

template <class R>
void make_rotation(R* a, R* b, R* c, R* s) {
  const R f = std::abs(*a);
  const R g = std::abs(*b);
  if (g == R(0)) {
    *c = R(1);
    *s = R(0);
    *b = R(0);
  } else if (f == R(0)) {
    *c = R(0);
    *s = R(1);
    *a = *b;
    *b = R(1);
  } else {
    const R scale = std::min(safe_max<R>, std::max({safe_min<R>, f, g}));
    const R sign = std::copysign(R(1), f > g ? *a : *b);
    const R fs = *a / scale;
    const R gs = *b / scale;
    const R r = sign * (scale * std::sqrt(fs * fs + gs * gs));
    *c = *a / r;
    *s = *b / r;
    *b = f > g ? *s : (*c != R(0) ? R(1) / *c : R(1));
    *a = r;
  }
}

template <class R>
void make_rotation(std::complex<R>* a, std::complex<R>* b, R* c, std::complex<R>* s) {
  using C = std::complex<R>;
  const auto largest = [](C z) { return std::max(std::abs(z.real()), std::abs(z.imag())); };
  const R f_size = largest(*a);
  const R g_size = largest(*b);
  if (g_size == R(0)) {
    *c = R(1);
    *s = C(0);
    return;
  }
  const auto length = [&](C z, R size) {
    const C scaled(z.real() / size, z.imag() / size);
    return std::sqrt(scaled.real() * scaled.real() + scaled.imag() * scaled.imag());
  };
  if (f_size == R(0)) {
    const R g = length(*b, g_size);
    *c = R(0);
    *s = C(b->real() / g_size / g, -b->imag() / g_size / g);
    *a = C(g * g_size);
    return;
  }
  // With u = f/|f|: c = |f| / h, s = u conj(g) / h, r = u h, h = sqrt(|f|^2 + |g|^2).
  const R scale = std::min(safe_max<R>, std::max({safe_min<R>, f_size, g_size}));
  const R f = length(*a, f_size);
  const C u(a->real() / f_size / f, a->imag() / f_size / f);
  const R fs = f * (f_size / scale);
  const C gs(b->real() / scale, b->imag() / scale);
  const R h = std::sqrt(fs * fs + gs.real() * gs.real() + gs.imag() * gs.imag());
  *c = fs / h;
  const C rotated = times(u, std::conj(gs));
  *s = C(rotated.real() / h, rotated.imag() / h);
  *a = C(u.real() * h * scale, u.imag() * h * scale);
}

template <class T>
void rotg(const sdk::arguments::rotg<T>& p) {
  make_rotation(p.a, p.b, p.c, p.s);
}

template <class T>
void rotmg(const sdk::arguments::rotmg<T>& p) {
  cblas::rotmg(p.d1, p.d2, p.x1, *p.y1, p.param);
}

template <class T>
void rot(const sdk::arguments::rot<T>& p) {
  check_xy("rot", p);
  on_pieces<T>(p, [&](int n, T* x, T* y) {
    if constexpr (sdk::is_complex<T>) {
      if (p.s.imag() != 0) {
        x = first(x, n, p.incx);
        y = first(y, n, p.incy);
        for (int i = 0; i < n; ++i, x += p.incx, y += p.incy) {
          const T rotated = p.c * *x + times(p.s, *y);
          *y = p.c * *y - times(std::conj(p.s), *x);
          *x = rotated;
        }
        return;
      }
    }
    cblas::rot(n, x, to_int(p.incx), y, to_int(p.incy), p.c, real_part(p.s));
  });
}

template <class T>
void rotm(const sdk::arguments::rotm<T>& p) {
  check_xy("rotm", p);
  on_pieces<T>(p, [&](int n, T* x, T* y) { cblas::rotm(n, x, to_int(p.incx), y, to_int(p.incy), p.param); });
}

template <class T>
void swap(const sdk::arguments::xy<T>& p) {
  check_xy("swap", p);
  on_pieces<T>(p, [&](int n, T* x, T* y) { cblas::swap(n, x, to_int(p.incx), y, to_int(p.incy)); });
}

template <class T>
void scale(const char* routine, const sdk::arguments::scal<T>& p) {
  check_sizes(routine, {{"n", p.n}, {"incx", p.incx}});
  for_pieces(Threads(p), p.n, pieces_of<T>(Threads(p), p.n), 16, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    T* x = p.x + begin * p.incx;
    if (p.alpha != T(0)) {
      cblas::scal(to_int(end - begin), p.alpha, x, to_int(p.incx));
      return;
    }
    // OpenBLAS would overwrite NaN and infinity with zeros.
    for (std::int64_t i = begin; i < end; ++i, x += p.incx) *x = times(p.alpha, *x);
  });
}

template <class T>
void scal(const sdk::arguments::scal<T>& p) {
  scale("scal", p);
}

template <class T>
void rscal(const sdk::arguments::scal<T>& p) {
  scale("rscal", p);
}

template <class T>
void copy(const sdk::arguments::xy<T>& p) {
  check_xy("copy", p);
  on_pieces<T>(p, [&](int n, const T* x, T* y) { cblas::copy(n, x, to_int(p.incx), y, to_int(p.incy)); });
}

/// Whether x and y are the same vector: OpenBLAS's complex kernels would then read real parts that they have already written.
template <class T, class P>
bool reads_what_it_writes(const P& p) {
  return sdk::is_complex<T> && p.x == p.y;
}

/// y = sum(x, y), element by element.
template <class T, class P, class Sum>
void one_by_one(const P& p, const Sum& sum) {
  const T* x = first(p.x, p.n, p.incx);
  T* y = first(p.y, p.n, p.incy);
  for (std::int64_t i = 0; i < p.n; ++i, x += p.incx, y += p.incy) *y = sum(*x, *y);
}

template <class T>
void axpy(const sdk::arguments::axpy<T>& p) {
  check_xy("axpy", p);
  if (reads_what_it_writes<T>(p)) {
    one_by_one<T>(p, [&](T x, T y) { return times(p.alpha, x) + y; });
    return;
  }
  on_pieces<T>(p, [&](int n, const T* x, T* y) { cblas::axpy(n, p.alpha, x, to_int(p.incx), y, to_int(p.incy)); });
}

template <class T>
void axpby(const sdk::arguments::axpby<T>& p) {
  check_xy("axpby", p);
  if (reads_what_it_writes<T>(p)) {
    const auto part = [](T factor, T value) { return factor == T(0) ? T(0) : times(factor, value); };
    one_by_one<T>(p, [&](T x, T y) { return part(p.alpha, x) + part(p.beta, y); });
    return;
  }
  on_pieces<T>(p, [&](int n, const T* x, T* y) { cblas::axpby(n, p.alpha, x, to_int(p.incx), p.beta, y, to_int(p.incy)); });
}

/// The sum of the results of body(n, x, y) for the pieces, in order.
template <class S, class T, class Body>
S sum_of(const sdk::arguments::dot<T>& p, const Body& body) {
  const std::int64_t max_count = pieces_of<T>(Threads(p), p.n);
  if (max_count == 1) return body(to_int(p.n), p.x, p.y);
  S sums[max_pieces];
  const std::int64_t pieces = for_pieces(Threads(p), p.n, max_count, 16, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    sums[piece] = body(to_int(end - begin), slice(p.x, p.n, p.incx, begin, end), slice(p.y, p.n, p.incy, begin, end));
  });
  S sum = sums[0];
  for (std::int64_t i = 1; i < pieces; ++i) sum += sums[i];
  return sum;
}

template <class T>
void dot(const sdk::arguments::dot<T>& p) {
  check_xy("dot", p);
  p.result.set(sum_of<T>(p, [&](int n, const T* x, const T* y) { return cblas::dotu(n, x, to_int(p.incx), y, to_int(p.incy)); }));
}

template <class T>
void dotu(const sdk::arguments::dot<T>& p) {
  check_xy("dotu", p);
  p.result.set(sum_of<T>(p, [&](int n, const T* x, const T* y) { return cblas::dotu(n, x, to_int(p.incx), y, to_int(p.incy)); }));
}

template <class T>
void dotc(const sdk::arguments::dot<T>& p) {
  check_xy("dotc", p);
  p.result.set(sum_of<T>(p, [&](int n, const T* x, const T* y) { return cblas::dotc(n, x, to_int(p.incx), y, to_int(p.incy)); }));
}

/// x'y of f32 in f64. OpenBLAS's dsdot sums in f32.
double wide_dot(const sdk::arguments::dot<float>& p) {
  return sum_of<double>(p, [&](int n, const float* x, const float* y) {
    constexpr int lanes = 16;
    double sums[lanes] = {};
    int i = 0;
    if (p.incx == 1 && p.incy == 1) {
      for (; i + lanes <= n; i += lanes) {
        for (int lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(x[i + lane]) * static_cast<double>(y[i + lane]);
      }
    }
    x = first(x, n, p.incx);
    y = first(y, n, p.incy);
    for (; i < n; ++i) sums[i % lanes] += static_cast<double>(x[i * p.incx]) * static_cast<double>(y[i * p.incy]);
    for (int width = lanes / 2; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
    }
    return sums[0];
  });
}

template <class T>
void sdsdot(const sdk::arguments::dot<T>& p) {
  check_xy("sdsdot", p);
  p.result.set(static_cast<float>(static_cast<double>(p.alpha) + wide_dot(p)));
}

template <class T>
void dsdot(const sdk::arguments::dot<T>& p) {
  check_xy("dsdot", p);
  p.result.set(wide_dot(p));
}

/// The beginnings and results of the pieces of a reduction.
template <class S>
struct Pieces {
  S values[max_pieces];
  std::int64_t begins[max_pieces];
  std::int64_t count;
};

template <class S, class T, class Body>
void reduce(const sdk::arguments::reduce<T>& p, std::int64_t pieces, const Body& body, Pieces<S>& out) {
  out.count = for_pieces(Threads(p), p.n, pieces, 16, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    out.begins[piece] = begin;
    out.values[piece] = body(to_int(end - begin), p.x + begin * p.incx);
  });
}

template <class T>
sdk::Real<T> norm(int n, const T* x, int incx) {
  if constexpr (std::is_same_v<T, double>) {
    // Twice as fast as OpenBLAS's nrm2, and as accurate unless a significant square overflows or underflows.
    const double squares = cblas::dotu(n, x, incx, x, incx);
    if (squares > 1e-270 && squares < 1e300) return std::sqrt(squares);
  }
  return cblas::nrm2(n, x, incx);
}

/// sqrt(sum of the squared norms), without overflow.
template <class R>
R norm_of_norms(const Pieces<R>& norms) {
  R largest = 0;
  for (std::int64_t i = 0; i < norms.count; ++i) {
    if (!(norms.values[i] <= largest)) largest = norms.values[i];
    if (std::isnan(largest)) return largest;
  }
  if (largest == R(0) || std::isinf(largest)) return largest;
  R sum = 0;
  for (std::int64_t i = 0; i < norms.count; ++i) {
    const R part = norms.values[i] / largest;
    sum += part * part;
  }
  return largest * std::sqrt(sum);
}

template <class T>
void nrm2(const sdk::arguments::reduce<T>& p) {
  using R = sdk::Real<T>;
  check_sizes("nrm2", {{"n", p.n}, {"incx", p.incx}});
  const auto body = [&](int n, const T* x) { return norm(n, x, to_int(p.incx)); };
  const std::int64_t pieces = pieces_of<T>(Threads(p), p.n);
  if (pieces == 1) {
    p.result.set(p.n == 0 ? R(0) : body(to_int(p.n), p.x));
    return;
  }
  Pieces<R> norms;
  reduce(p, pieces, body, norms);
  p.result.set(norm_of_norms(norms));
}

template <class T>
void asum(const sdk::arguments::reduce<T>& p) {
  using R = sdk::Real<T>;
  check_sizes("asum", {{"n", p.n}, {"incx", p.incx}});
  const auto body = [&](int n, const T* x) {
    if constexpr (sizeof(T) > sizeof(R)) {
      // A contiguous complex vector is a real one of twice the length. Besides, scasum of OpenBLAS 0.3.21 is wrong with AVX-512 for most n
      // that are not multiples of 8.
      if (p.incx == 1 && n <= std::numeric_limits<int>::max() / 2) return cblas::asum(2 * n, reinterpret_cast<const R*>(x), 1);
    }
    return cblas::asum(n, x, to_int(p.incx));
  };
  const std::int64_t pieces = pieces_of<T>(Threads(p), p.n);
  if (pieces == 1) {
    p.result.set(p.n == 0 ? R(0) : body(to_int(p.n), p.x));
    return;
  }
  Pieces<R> sums;
  reduce(p, pieces, body, sums);
  R sum = sums.values[0];
  for (std::int64_t i = 1; i < sums.count; ++i) sum += sums.values[i];
  p.result.set(sum);
}

template <class T>
sdk::Real<T> size_of(T x) {
  if constexpr (sdk::is_complex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());
  } else {
    return std::abs(x);
  }
}

/// The first index of the best element, compared by size_of.
template <class T, class Find, class Better>
void find_index(const char* routine, const sdk::arguments::reduce<T>& p, const Find& find, const Better& better) {
  check_sizes(routine, {{"n", p.n}, {"incx", p.incx}});
  if (p.n == 0) {
    p.result.set(std::int64_t{-1});
    return;
  }
  const auto body = [&](int n, const T* x) { return find(n, x, to_int(p.incx)); };
  const std::int64_t pieces = pieces_of<T>(Threads(p), p.n);
  if (pieces == 1) {
    p.result.set(body(to_int(p.n), p.x));
    return;
  }
  Pieces<std::int64_t> indices;
  reduce(p, pieces, body, indices);
  std::int64_t best = indices.values[0];
  for (std::int64_t i = 1; i < indices.count; ++i) {
    const std::int64_t index = indices.begins[i] + indices.values[i];
    if (better(size_of(p.x[index * p.incx]), size_of(p.x[best * p.incx]))) best = index;
  }
  p.result.set(best);
}

template <class T>
void iamax(const sdk::arguments::reduce<T>& p) {
  find_index(
      "iamax", p, [](int n, const T* x, int incx) { return cblas::iamax(n, x, incx); }, [](auto a, auto b) { return a > b; });
}

template <class T>
void iamin(const sdk::arguments::reduce<T>& p) {
  find_index(
      "iamin", p, [](int n, const T* x, int incx) { return cblas::iamin(n, x, incx); }, [](auto a, auto b) { return a < b; });
}

}  // namespace

TENON_BLAS_ROUTINE(rotg)
TENON_BLAS_ROUTINE(rotmg)
TENON_BLAS_ROUTINE(rot)
TENON_BLAS_ROUTINE(rotm)
TENON_BLAS_ROUTINE(swap)
TENON_BLAS_ROUTINE(scal)
TENON_BLAS_ROUTINE(rscal)
TENON_BLAS_ROUTINE(copy)
TENON_BLAS_ROUTINE(axpy)
TENON_BLAS_ROUTINE(axpby)
TENON_BLAS_ROUTINE(dot)
TENON_BLAS_ROUTINE(dotu)
TENON_BLAS_ROUTINE(dotc)
TENON_BLAS_ROUTINE(sdsdot)
TENON_BLAS_ROUTINE(dsdot)
TENON_BLAS_ROUTINE(nrm2)
TENON_BLAS_ROUTINE(asum)
TENON_BLAS_ROUTINE(iamax)
TENON_BLAS_ROUTINE(iamin)

}  // namespace tenon::openblas
