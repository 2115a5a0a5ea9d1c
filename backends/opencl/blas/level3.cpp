// SPDX-License-Identifier: Apache-2.0
// BLAS level 3. Large products are CLBlast's gemm, to which all other routines are brought: matrices that it does not read are written out,
// triangles are divided into blocks. All else is blas/level3.cl.
//
// Source  Kagstrom, Ling, Van Loan: GEMM-Based Level 3 BLAS (1998).
#include <optional>

#include "blas/routine.h"
#include "gemm/clblast_gemm.h"

namespace tenon::opencl {
namespace blas {
namespace {

/// C = alpha A B + beta C where C is stored, for each entry of a batch; a Hermitian C gets a real diagonal.
template <class T>
struct Product {
  Scalar<T> alpha;
  Matrix<T> a, b;
  Scalar<T> beta;
  Matrix<T> c;
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

/// C = alpha A + beta B where C is stored
template <class T>
void add(Stream& stream, const Scalar<T>& alpha, const Matrix<T>& a, const Scalar<T>& beta, const Matrix<T>& b, const Matrix<T>& c) {
  launch_over_elements(stream, sources::level3, "add", c, alpha, a, beta, b, c);
}
/// A dense copy of a matrix, with op and whatever is not stored.
template <class T>
struct Copy {
  Copy(Stream& stream, const Matrix<T>& a)
      : memory(stream, a.view.m * a.view.n * static_cast<std::int64_t>(sizeof(T))),
        matrix(temporary_matrix<T>(memory, a.view.m, a.view.n, a.view.by_rows != 0)) {
    add<T>(stream, {T(1)}, a, {T(0)}, a, matrix);
  }
  Temporary memory;
  Matrix<T> matrix;
};

template <class T>
void simple_product(Stream& stream, const Product<T>& p) {
  constexpr std::int64_t tile = 8;  // TILE of blas/level3.cl
  const std::int64_t tiles = ((p.c.view.m + tile - 1) / tile) * ((p.c.view.n + tile - 1) / tile);
  launch<T, tile * tile>(stream, sources::level3, "product", tiles * tile * tile * p.batch, p.alpha, p.a, p.b, p.beta, p.c, p.stride_a,
                         p.stride_b, p.stride_c);
}

/// With numbers of the host: those in device memory are waited for.
template <class T>
Scalar<T> on_host(const Stream& stream, const Scalar<T>& x) {
  if (x.memory.buffer == nullptr) return x;
  const bool is_real = x.form == Scalar<T>::real;
  T value{};
  stream.device().check(api().clEnqueueReadBuffer(stream.queue(), x.memory.buffer, CL_TRUE, x.memory.offset,
                                                  is_real ? sizeof(sdk::Real<T>) : sizeof(T), &value, 0, nullptr, nullptr),
                        "clEnqueueReadBuffer");
  return x.form == Scalar<T>::conjugated ? Scalar<T>{value}.conj() : Scalar<T>{value};
}

template <class T>
void multiply(Stream& stream, const Product<T>& p);

/// By CLBlast. False: for simple_product.
template <class T>
bool large_product(Stream& stream, const Product<T>& p) {
  const std::int64_t m = p.c.view.m, n = p.c.view.n, k = p.a.view.n;
  if (!worth_clblast(m, n, k, 1) || clblast(stream.device().host) == nullptr) return false;
  Product<T> q = p;
  q.alpha = on_host(stream, p.alpha);
  q.beta = on_host(stream, p.beta);
  if (q.alpha.is(T(0))) return false;
  const bool by_rows = p.c.view.by_rows != 0;
  const auto is_readable = [&](const Matrix<T>& x) {
    return x.is_full() && x.view.kind == View::general && (x.view.conjugate == 0 || (x.view.by_rows != 0) != by_rows);
  };
  std::optional<Copy<T>> copy_a, copy_b;
  if (p.batch == 1 && !is_readable(p.a)) q.a = copy_a.emplace(stream, p.a).matrix;
  if (p.batch == 1 && !is_readable(p.b)) q.b = copy_b.emplace(stream, p.b).matrix;
  if (!is_readable(q.a) || !is_readable(q.b)) return false;
  if (!p.c.is_full() || p.c.view.kind == View::hermitian) {  // of one element, too: its imaginary part is 0
    constexpr std::int64_t block = 256;
    if (n <= block) {  // the whole square, of which a triangle is used
      const Temporary memory(stream, m * n * static_cast<std::int64_t>(sizeof(T)));
      Product<T> square = q;
      square.beta = {T(0)};
      square.c = temporary_matrix<T>(memory, m, n, by_rows);
      if (!large_product(stream, square)) return false;
      add(stream, {T(1)}, square.c, q.beta, p.c, p.c);
      return true;
    }
    const std::int64_t first = (n / 2 + block - 1) / block * block, rest = n - first;
    const auto part = [&](std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
      multiply(stream, Product<T>{q.alpha, q.a.block(i, 0, rows, k), q.b.block(0, j, k, columns), q.beta, p.c.block(i, j, rows, columns)});
    };
    part(0, first, 0, first);
    p.c.is_upper() ? part(0, first, first, rest) : part(first, rest, 0, first);
    part(first, rest, first, rest);
    return true;
  }
  const auto operand = [&](const Matrix<T>& x, std::int64_t stride) {
    const bool transposed = (x.view.by_rows != 0) != by_rows;
    return typename ClblastGemm<T>::Operand{x.data, x.view.lead, stride,
                                            !transposed             ? CLBlastTransposeNo
                                            : x.view.conjugate != 0 ? CLBlastTransposeConjugate
                                                                    : CLBlastTransposeYes};
  };
  return clblast_gemm<T>(stream, {.layout = by_rows ? CLBlastLayoutRowMajor : CLBlastLayoutColMajor,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .batch = p.batch,
                                  .alpha = q.alpha.value,
                                  .beta = q.beta.value,
                                  .a = operand(q.a, p.stride_a),
                                  .b = operand(q.b, p.stride_b),
                                  .c = operand(q.c, p.stride_c)});
}

template <class T>
void multiply(Stream& stream, const Product<T>& p) {
  if (p.c.view.m == 0 || p.c.view.n == 0 || p.batch == 0) return;
  if (!large_product(stream, p)) simple_product(stream, p);
}

/// The product of a gemm or of a batch; C is all of a matrix or a triangle.
template <class T, class P>
Product<T> product(const P& p, const Matrix<T>& c, const T* a, const T* b) {
  const std::int64_t m = c.view.m, n = c.view.n;
  const auto factor = [&](std::uint32_t trans, std::int64_t rows, std::int64_t columns, const T* data, std::int64_t ld) {
    if (transposes(trans)) std::swap(rows, columns);
    return dense(p.stream, p.layout, rows, columns, p.alpha.is(T(0)) ? nullptr : data, ld).op(trans);
  };
  return {p.alpha, factor(p.trans_a, m, p.k, a, p.lda), factor(p.trans_b, p.k, n, b, p.ldb), p.beta, c};
}

template <class T>
void multiply_symmetric(const arguments::symm<T>& p, View::Kind kind) {
  const bool left = p.side == TENON_LEFT;
  const Matrix<T> a = dense_triangle(p.stream, p.layout, p.uplo, left ? p.m : p.n, p.a, p.lda).of_kind(kind);
  const Matrix<T> b = dense(p.stream, p.layout, p.m, p.n, p.b, p.ldb), c = dense<T>(p.stream, p.layout, p.m, p.n, p.c, p.ldc);
  multiply(p.stream, Product<T>{p.alpha, left ? a : b, left ? b : a, p.beta, c});
}

/// C = alpha A B' + beta C and, with `both`, C += alpha B A', with op(A) and op(B) for A and B, conjugate transposes and conj(alpha) if
/// Hermitian
template <class T>
void rank_update(const arguments::syrk<T>& p, const T* b_data, std::int64_t ldb, View::Kind kind, bool both) {
  const bool transposed = transposes(p.trans);
  const auto factor = [&](const T* data, std::int64_t ld) {
    return dense(p.stream, p.layout, transposed ? p.k : p.n, transposed ? p.n : p.k, data, ld).op(p.trans);
  };
  const auto mirrored = [&](Matrix<T> x) {
    x = x.transposed();
    if (kind == View::hermitian) x.view.conjugate = x.view.conjugate == 0 ? 1 : 0;
    return x;
  };
  const Matrix<T> a = factor(p.a, p.lda), b = factor(b_data, ldb);
  const Matrix<T> c = dense_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.c, p.ldc).of_kind(kind);
  multiply(p.stream, Product<T>{p.alpha, a, mirrored(b), p.beta, c});
  if (!both) return;
  multiply(p.stream, Product<T>{kind == View::hermitian ? p.alpha.conj() : p.alpha, b, mirrored(a), {T(1)}, c});
}

/// Triangles up to this size are not divided.
constexpr std::int64_t triangle_size = 64;

/// B = alpha A B, A triangular
template <class T>
void multiply_triangle(Stream& stream, const Scalar<T>& alpha, const Matrix<T>& a, const Matrix<T>& b) {
  const std::int64_t n = a.view.n, columns = b.view.n;
  if (n <= triangle_size) {
    const Copy<T> former(stream, b);
    return simple_product(stream, Product<T>{alpha, a, former.matrix, {T(0)}, b});
  }
  const std::int64_t first = (n / 2 + triangle_size - 1) / triangle_size * triangle_size, rest = n - first;
  const Matrix<T> b1 = b.block(0, 0, first, columns), b2 = b.block(first, 0, rest, columns);
  const Matrix<T> a1 = a.block(0, 0, first, first), a2 = a.block(first, first, rest, rest);
  if (a.is_upper()) {
    multiply_triangle(stream, alpha, a1, b1);
    multiply(stream, Product<T>{alpha, a.block(0, first, first, rest), b2, {T(1)}, b1});
    multiply_triangle(stream, alpha, a2, b2);
  } else {
    multiply_triangle(stream, alpha, a2, b2);
    multiply(stream, Product<T>{alpha, a.block(first, 0, rest, first), b1, {T(1)}, b2});
    multiply_triangle(stream, alpha, a1, b1);
  }
}

/// B = alpha A^-1 B, A triangular
template <class T>
void solve_triangle(Stream& stream, const Scalar<T>& alpha, const Matrix<T>& a, const Matrix<T>& b) {
  const std::int64_t n = a.view.n, columns = b.view.n;
  if (n <= triangle_size) {
    const std::int64_t down = b.view.by_rows != 0 ? b.view.lead : 1, across = b.view.by_rows != 0 ? 1 : b.view.lead;
    return launch<T, triangle_size>(stream, sources::level2, "solve", columns * triangle_size, alpha, a, Vector{b.data, down}, across);
  }
  const std::int64_t first = (n / 2 + triangle_size - 1) / triangle_size * triangle_size, rest = n - first;
  const Matrix<T> b1 = b.block(0, 0, first, columns), b2 = b.block(first, 0, rest, columns);
  const Matrix<T> a1 = a.block(0, 0, first, first), a2 = a.block(first, first, rest, rest);
  if (a.is_upper()) {
    solve_triangle(stream, alpha, a2, b2);
    multiply(stream, Product<T>{{T(-1)}, a.block(0, first, first, rest), b2, alpha, b1});
    solve_triangle(stream, {T(1)}, a1, b1);
  } else {
    solve_triangle(stream, alpha, a1, b1);
    multiply(stream, Product<T>{{T(-1)}, a.block(first, 0, rest, first), b1, alpha, b2});
    solve_triangle(stream, {T(1)}, a2, b2);
  }
}

/// f(stream, alpha, op(A), B) or, for side right, f(stream, alpha, op(A)', B'): B op(A) = (op(A)' B')'. Numbers of divided triangles are
/// those of the host.
template <class T, class Function>
void with_triangle(const arguments::trmm<T>& p, const Function& f) {
  if (p.m == 0 || p.n == 0) return;
  const bool left = p.side == TENON_LEFT;
  const std::int64_t n = left ? p.m : p.n;
  const Scalar<T> alpha = n <= triangle_size ? p.alpha : on_host(p.stream, p.alpha);
  const Matrix<T> b = dense<T>(p.stream, p.layout, p.m, p.n, p.b, p.ldb);
  if (alpha.is(T(0))) return add<T>(p.stream, alpha, b, alpha, b, b);
  const Matrix<T> a = triangular(dense_triangle(p.stream, p.layout, p.uplo, n, p.a, p.lda), p.trans, p.diag);
  f(p.stream, alpha, left ? a : a.transposed(), left ? b : b.transposed());
}
template <class T>
void geam(const arguments::geam<T>& p) {
  const auto operand = [&](std::uint32_t trans, const T* data, std::int64_t ld, const Scalar<T>& factor) {
    const bool transposed = transposes(trans);
    return dense(p.stream, p.layout, transposed ? p.n : p.m, transposed ? p.m : p.n, factor.is(T(0)) ? nullptr : data, ld).op(trans);
  };
  add(p.stream, p.alpha, operand(p.trans_a, p.a, p.lda, p.alpha), p.beta, operand(p.trans_b, p.b, p.ldb, p.beta),
      dense<T>(p.stream, p.layout, p.m, p.n, p.c, p.ldc));
}

template <class T>
void dgmm(const arguments::dgmm<T>& p) {
  const bool right = p.side == TENON_RIGHT;
  const Matrix<T> c = dense<T>(p.stream, p.layout, p.m, p.n, p.c, p.ldc);
  launch_over_elements(p.stream, sources::level3, "scale_lines", c, dense(p.stream, p.layout, p.m, p.n, p.a, p.lda),
                       vector(p.stream, p.x, right ? p.n : p.m, p.incx), c, std::int32_t{right});
}

/// Entries may be in different buffers, of which a kernel has one: a product for each.
template <class T>
void gemm_batched(const arguments::gemm_batched<T>& p) {
  const auto at = [](const std::uint64_t* list, std::int64_t i) { return sdk::detail::pointer<T>(list[i]); };
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const Matrix<T> c = dense<T>(p.stream, p.layout, p.m, p.n, at(p.c, i), p.ldc);
    multiply(p.stream, product<T>(p, c, p.a == nullptr ? nullptr : at(p.a, i), p.b == nullptr ? nullptr : at(p.b, i)));
  }
}

template <class T>
void gemm_strided_batched(const arguments::gemm_strided_batched<T>& p) {
  Product<T> all = product<T>(p, dense<T>(p.stream, p.layout, p.m, p.n, p.c, p.ldc), p.a, p.b);
  all.batch = p.batch;
  all.stride_a = p.stride_a;
  all.stride_b = p.stride_b;
  all.stride_c = p.stride_c;
  multiply(p.stream, all);
}

}  // namespace
}  // namespace blas

TENON_OPENCL_BLAS(gemm, multiply(p.stream, product<T>(p, dense<T>(p.stream, p.layout, p.m, p.n, p.c, p.ldc), p.a, p.b)))
TENON_OPENCL_BLAS(gemmt, multiply(p.stream, product<T>(p, dense_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.c, p.ldc), p.a, p.b)))
TENON_OPENCL_BLAS(symm, multiply_symmetric(p, View::symmetric))
TENON_OPENCL_BLAS(hemm, multiply_symmetric(p, View::hermitian))
TENON_OPENCL_BLAS(syrk, rank_update(p, p.a, p.lda, View::symmetric, false))
TENON_OPENCL_BLAS(herk, rank_update(p, p.a, p.lda, View::hermitian, false))
TENON_OPENCL_BLAS(syr2k, rank_update(p, p.b, p.ldb, View::symmetric, true))
TENON_OPENCL_BLAS(her2k, rank_update(p, p.b, p.ldb, View::hermitian, true))
TENON_OPENCL_BLAS(trmm, with_triangle(p, multiply_triangle<T>))
TENON_OPENCL_BLAS(trsm, with_triangle(p, solve_triangle<T>))
TENON_OPENCL_BLAS(geam, geam(p))
TENON_OPENCL_BLAS(dgmm, dgmm(p))
TENON_OPENCL_BLAS(gemm_batched, gemm_batched(p))
TENON_OPENCL_BLAS(gemm_strided_batched, gemm_strided_batched(p))

}  // namespace tenon::opencl
