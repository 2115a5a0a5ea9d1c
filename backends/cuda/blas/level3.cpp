// SPDX-License-Identifier: Apache-2.0
// BLAS level 3: matrices; then the extensions. In row-major order C' is computed: the factors are swapped and keep their operations.
#include <algorithm>

#include "blas/vectors.h"

namespace tenon::cuda {
namespace blas {
namespace {

// gemmt splits C into square blocks of this many columns: cuBLAS computes the off-diagonal blocks, our own kernel the diagonal ones.
constexpr std::int64_t panel = 256;

/// A factor for our own product kernel.
template <class T>
Factor<T> factor(const T* data, std::int64_t ld, std::uint32_t trans, std::int64_t stride = 0) {
  return {data, ld, transposes(trans), sdk::is_complex<T> && (trans == TENON_CONJ_TRANS || trans == TENON_CONJ_NO_TRANS), stride};
}
/// Element (i, 0) and (0, i) of op of a matrix.
template <class T>
const T* row(const T* matrix, std::int64_t ld, std::uint32_t trans, std::int64_t i) {
  return matrix == nullptr ? nullptr : matrix + i * (transposes(trans) ? ld : 1);
}
template <class T>
const T* column(const T* matrix, std::int64_t ld, std::uint32_t trans, std::int64_t i) {
  return matrix == nullptr ? nullptr : matrix + i * (transposes(trans) ? 1 : ld);
}

/// The arguments of a product in column-major order.
template <class T>
struct Arguments {
  std::uint32_t trans_a, trans_b;
  std::int64_t m, n, k;
  Scalar<T> alpha;
  const T* a;
  std::int64_t lda, stride_a;
  const T* b;
  std::int64_t ldb, stride_b;
  Scalar<T> beta;
  T* c;
  std::int64_t ldc, stride_c, batch;

  Operation op_a() const { return operation(trans_a, sdk::is_complex<T>); }
  Operation op_b() const { return operation(trans_b, sdk::is_complex<T>); }
  bool conjugates() const { return op_a().conjugate || op_b().conjugate; }
  Product<T> product(Part part = Part::all) const {
    return {m,    n,     k,        alpha.read(), factor(a, lda, trans_a, stride_a), factor(b, ldb, trans_b, stride_b), beta.read(), c, ldc,
            part, batch, stride_c, nullptr};
  }
};
template <class T>
Arguments<T> column_major(std::uint32_t layout, Arguments<T> p) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return p;
  std::swap(p.trans_a, p.trans_b);
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.lda, p.ldb);
  std::swap(p.stride_a, p.stride_b);
  return p;
}

template <class T>
void gemm(Queue& q, std::uint32_t layout, std::uint32_t, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n,
          std::int64_t k, Scalar<T> alpha, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Scalar<T> beta, T* c,
          std::int64_t ldc) {
  const auto p = column_major<T>(layout, {trans_a, trans_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1});
  if (p.conjugates()) return multiply(q.stream, p.product());
  q.call<T>(q.cublas.gemm, p.op_a().op, p.op_b().op, p.m, p.n, p.k, alpha, p.a, p.lda, p.b, p.ldb, beta, c, ldc);
}

template <class T>
void gemmt(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t, std::int64_t n,
           std::int64_t k, Scalar<T> alpha, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Scalar<T> beta, T* c,
           std::int64_t ldc) {
  const auto p = column_major<T>(layout, {trans_a, trans_b, n, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1});
  const bool upper = triangle(layout, uplo) == CUBLAS_FILL_MODE_UPPER;
  const Part part = upper ? Part::upper : Part::lower;
  if (p.conjugates()) return multiply(q.stream, p.product(part));
  for (std::int64_t begin = 0; begin < n; begin += panel) {
    const std::int64_t width = std::min(panel, n - begin), end = begin + width;
    auto square = p;
    square.m = square.n = width;
    square.a = row(p.a, p.lda, p.trans_a, begin);
    square.b = column(p.b, p.ldb, p.trans_b, begin);
    square.c = c + begin + begin * ldc;
    multiply(q.stream, square.product(part));
    const std::int64_t first = upper ? 0 : end, rows = upper ? begin : n - end;
    if (rows == 0) continue;
    q.call<T>(q.cublas.gemm, p.op_a().op, p.op_b().op, rows, width, k, alpha, row(p.a, p.lda, p.trans_a, first), p.lda, square.b, p.ldb,
              beta, c + first + begin * ldc, ldc);
  }
}

/// C = beta C. Where alpha is 0, cuBLAS multiplies the factors of some routines by 0, which does not make NaN 0; factors with k = 0 terms
/// are not read.
template <class T>
void scale(Queue& q, std::int64_t rows, std::int64_t columns, DeviceScalar<T> beta, T* c, std::int64_t ldc) {
  multiply(q.stream, Product<T>{rows, columns, 0, {T(0), nullptr}, {}, {}, beta, c, ldc});
}
template <class T>
std::int64_t terms(Scalar<T> alpha, std::int64_t k) {
  return alpha.is_zero() ? 0 : k;
}

template <class T>
void symm(Queue& q, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::int64_t m, std::int64_t n, Scalar<T> alpha,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Scalar<T> beta, T* c, std::int64_t ldc) {
  const auto [rows, columns] = in_order(layout, m, n);
  if (alpha.is_zero()) return scale(q, rows, columns, beta.read(), c, ldc);
  q.call<T>(q.cublas.symm, side_of(layout, side), triangle(layout, uplo), rows, columns, alpha, a, lda, b, ldb, beta, c, ldc);
}
template <class T>
void hemm(Queue& q, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::int64_t m, std::int64_t n, Scalar<T> alpha,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Scalar<T> beta, T* c, std::int64_t ldc) {
  const auto [rows, columns] = in_order(layout, m, n);
  if (alpha.is_zero()) return scale(q, rows, columns, beta.read(), c, ldc);
  q.call<T>(q.cublas.hemm, side_of(layout, side), triangle(layout, uplo), rows, columns, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T>
void syrk(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::int64_t n, std::int64_t k, Scalar<T> alpha,
          const T* a, std::int64_t lda, const T*, std::int64_t, Scalar<T> beta, T* c, std::int64_t ldc) {
  q.call<T>(q.cublas.syrk, triangle(layout, uplo), rank_operation(layout, trans, false), n, terms(alpha, k), alpha, a, lda, beta, c, ldc);
}
template <class T>
void herk(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::int64_t n, std::int64_t k,
          Scalar<sdk::Real<T>> alpha, const T* a, std::int64_t lda, const T*, std::int64_t, Scalar<sdk::Real<T>> beta, T* c,
          std::int64_t ldc) {
  q.call<T>(q.cublas.herk, triangle(layout, uplo), rank_operation(layout, trans, true), n, terms(alpha, k), alpha, a, lda, beta, c, ldc);
}
template <class T>
void syr2k(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::int64_t n, std::int64_t k, Scalar<T> alpha,
           const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Scalar<T> beta, T* c, std::int64_t ldc) {
  q.call<T>(q.cublas.syr2k, triangle(layout, uplo), rank_operation(layout, trans, false), n, terms(alpha, k), alpha, a, lda, b, ldb, beta,
            c, ldc);
}
/// Row-major: C' = alpha conj(B) A' + conj(alpha) conj(A) B' + beta C', so A and B are swapped and alpha is unchanged.
template <class T>
void her2k(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::int64_t n, std::int64_t k, Scalar<T> alpha,
           const T* a, std::int64_t lda, const T* b, std::int64_t ldb, Scalar<sdk::Real<T>> beta, T* c, std::int64_t ldc) {
  const auto [first, second] = in_order(layout, a, b);
  const auto [ld_first, ld_second] = in_order(layout, lda, ldb);
  q.call<T>(q.cublas.her2k, triangle(layout, uplo), rank_operation(layout, trans, true), n, terms(alpha, k), alpha, first, ld_first, second,
            ld_second, beta, c, ldc);
}

/// body(side, uplo, op, diag, rows, columns, alpha) replaces B; with conj(A): conj(B) by conj(alpha) A conj(B).
template <class T, class Body>
void replace(Queue& q, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag,
             std::int64_t m, std::int64_t n, Scalar<T> alpha, T* b, std::int64_t ldb, const Body& body) {
  const auto [rows, columns] = in_order(layout, m, n);
  if (alpha.is_zero()) return scale(q, rows, columns, {T(0), nullptr}, b, ldb);
  const Operation op = operation(trans, sdk::is_complex<T>);
  const auto call = [&, rows = rows, columns = columns](Scalar<T> factor) {
    body(side_of(layout, side), triangle(layout, uplo), op.op, diagonal(diag), rows, columns, factor);
  };
  if constexpr (sdk::is_complex<T>) {
    if (op.conjugate) {
      const Lines<T> lines{b, 1, ldb};
      const auto conjugate_b = [&, rows = rows, columns = columns] { conjugate<T>(q.stream, rows, columns, {b, 1, ldb}, lines); };
      conjugate_b();
      call(q.conjugate(alpha));
      conjugate_b();
      return;
    }
  }
  call(alpha);
}
template <class T>
void trmm(Queue& q, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, std::int64_t m,
          std::int64_t n, Scalar<T> alpha, const T* a, std::int64_t lda, T* b, std::int64_t ldb) {
  replace(q, layout, side, uplo, trans, diag, m, n, alpha, b, ldb,
          [&](auto of, auto part, auto op, auto unit, std::int64_t rows, std::int64_t columns, Scalar<T> factor) {
            q.call<T>(q.cublas.trmm, of, part, op, unit, rows, columns, factor, a, lda, static_cast<const T*>(b), ldb, b, ldb);
          });
}
template <class T>
void trsm(Queue& q, std::uint32_t layout, std::uint32_t side, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, std::int64_t m,
          std::int64_t n, Scalar<T> alpha, const T* a, std::int64_t lda, T* b, std::int64_t ldb) {
  replace(q, layout, side, uplo, trans, diag, m, n, alpha, b, ldb,
          [&](auto of, auto part, auto op, auto unit, std::int64_t rows, std::int64_t columns, Scalar<T> factor) {
            q.call<T>(q.cublas.trsm, of, part, op, unit, rows, columns, factor, a, lda, b, ldb);
          });
}

template <class T>
void geam(Queue& q, std::uint32_t layout, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n, Scalar<T> alpha,
          const T* a, std::int64_t lda, Scalar<T> beta, const T* b, std::int64_t ldb, T* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  const auto [rows, columns] = in_order(layout, m, n);
  Operation op_a = operation(trans_a, sdk::is_complex<T>), op_b = operation(trans_b, sdk::is_complex<T>);
  if (op_a.conjugate || op_b.conjugate) {
    return add(q.stream, rows, columns, alpha.read(), factor(a, lda, trans_a), beta.read(), factor(b, ldb, trans_b), c, ldc);
  }
  // A matrix that is not read may be NULL, but cuBLAS checks its arguments, so it gets the other one.
  if (alpha.is_zero() && beta.is_zero()) {
    a = b = c;
    lda = ldb = ldc;
    op_a = op_b = {};
  } else if (alpha.is_zero()) {
    a = b;
    lda = ldb;
    op_a = op_b;
  } else if (beta.is_zero()) {
    b = a;
    ldb = lda;
    op_b = op_a;
  }
  q.call<T>(q.cublas.geam, op_a.op, op_b.op, rows, columns, alpha, a, lda, beta, b, ldb, c, ldc);
}

template <class T>
void dgmm(Queue& q, std::uint32_t layout, std::uint32_t side, std::int64_t m, std::int64_t n, const T* a, std::int64_t lda, const T* x,
          std::int64_t incx, T* c, std::int64_t ldc) {
  const auto [rows, columns] = in_order(layout, m, n);
  q.call<T>(q.cublas.dgmm, side_of(layout, side), rows, columns, a, lda, x, incx, c, ldc);
}

template <class T>
void gemm_batched(Queue& q, std::uint32_t layout, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n,
                  std::int64_t k, Scalar<T> alpha, const std::uint64_t* a, std::int64_t lda, const std::uint64_t* b, std::int64_t ldb,
                  Scalar<T> beta, const std::uint64_t* c, std::int64_t ldc, std::int64_t batch) {
  const auto p =
      column_major<T>(layout, {trans_a, trans_b, m, n, k, alpha, nullptr, lda, 0, nullptr, ldb, 0, beta, nullptr, ldc, 0, batch});
  const auto [first, second] = in_order(layout, a, b);
  std::uint64_t* const on_device = q.cublas_stream.addresses();
  std::uint64_t* const parts[3] = {on_device, on_device + CublasStream::batch, on_device + 2 * CublasStream::batch};
  for (std::int64_t begin = 0; begin < batch; begin += CublasStream::batch) {
    const std::int64_t count = std::min(CublasStream::batch, batch - begin);
    for (std::int64_t at = 0; at < count; at += store_limit) {
      const std::int64_t some = std::min(store_limit, count - at);
      // With alpha = 0 neither factor is read, and their addresses may be NULL.
      if (first != nullptr) store_addresses(q.stream, first + begin + at, some, parts[0] + at);
      if (second != nullptr) store_addresses(q.stream, second + begin + at, some, parts[1] + at);
      store_addresses(q.stream, c + begin + at, some, parts[2] + at);
    }
    if (p.conjugates()) {
      Product<T> product = p.product();
      product.a.addresses = parts[0];
      product.b.addresses = parts[1];
      product.addresses_c = parts[2];
      product.batch = count;
      multiply(q.stream, product);
    } else {
      q.call<T>(q.cublas.gemm_batched, p.op_a().op, p.op_b().op, p.m, p.n, terms(alpha, k), alpha, reinterpret_cast<const T**>(parts[0]),
                p.lda, reinterpret_cast<const T**>(parts[1]), p.ldb, beta, reinterpret_cast<T**>(parts[2]), ldc, count);
    }
  }
}

template <class T>
void gemm_strided_batched(Queue& q, std::uint32_t layout, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n,
                          std::int64_t k, Scalar<T> alpha, const T* a, std::int64_t lda, std::int64_t stride_a, const T* b,
                          std::int64_t ldb, std::int64_t stride_b, Scalar<T> beta, T* c, std::int64_t ldc, std::int64_t stride_c,
                          std::int64_t batch) {
  const auto p =
      column_major<T>(layout, {trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch});
  if (p.conjugates()) return multiply(q.stream, p.product());
  q.call<T>(q.cublas.gemm_strided_batched, p.op_a().op, p.op_b().op, p.m, p.n, k, alpha, p.a, p.lda, static_cast<long long>(p.stride_a),
            p.b, p.ldb, static_cast<long long>(p.stride_b), beta, c, ldc, static_cast<long long>(stride_c), batch);
}

}  // namespace
}  // namespace blas
TENON_CUDA_BLAS(gemm)
TENON_CUDA_BLAS(gemmt)
TENON_CUDA_BLAS(symm)
TENON_CUDA_BLAS(hemm)
TENON_CUDA_BLAS(syrk)
TENON_CUDA_BLAS(herk)
TENON_CUDA_BLAS(syr2k)
TENON_CUDA_BLAS(her2k)
TENON_CUDA_BLAS(trmm)
TENON_CUDA_BLAS(trsm)
TENON_CUDA_BLAS(geam)
TENON_CUDA_BLAS(dgmm)
TENON_CUDA_BLAS(gemm_batched)
TENON_CUDA_BLAS(gemm_strided_batched)
}  // namespace tenon::cuda
