// SPDX-License-Identifier: Apache-2.0
// BLAS level 1: vectors. cuBLAS counts from 1, has no axpby, and no f32 sums carried in f64.
#include "blas/vectors.h"

namespace tenon::cuda {
namespace blas {
namespace {

template <class T>
void rotg(Queue& q, T* a, T* b, sdk::Real<T>* c, T* s) {
  q.call<T>(q.cublas.rotg, a, b, c, s);
}
template <class T>
void rotmg(Queue& q, T* d1, T* d2, T* x1, const T* y1, T* param) {
  q.call<T>(q.cublas.rotmg, d1, d2, x1, y1, param);
}
template <class T>
void rot(Queue& q, std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy, Scalar<sdk::Real<T>> c, Scalar<T> s) {
  q.call<T>(q.cublas.rot, n, x, incx, y, incy, c, s);
}
template <class T>
void rotm(Queue& q, std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy, const T* param) {
  q.call<T>(q.cublas.rotm, n, x, incx, y, incy, param);
}
template <class T>
void swap(Queue& q, std::int64_t n, T* x, std::int64_t incx, T* y, std::int64_t incy) {
  q.call<T>(q.cublas.swap, n, x, incx, y, incy);
}
template <class T>
void scal(Queue& q, std::int64_t n, Scalar<T> alpha, T* x, std::int64_t incx) {
  q.call<T>(q.cublas.scal, n, alpha, x, incx);
}
template <class T>
void rscal(Queue& q, std::int64_t n, Scalar<sdk::Real<T>> alpha, T* x, std::int64_t incx) {
  q.call<T>(q.cublas.rscal, n, alpha, x, incx);
}
template <class T>
void copy(Queue& q, std::int64_t n, const T* x, std::int64_t incx, T* y, std::int64_t incy) {
  q.call<T>(q.cublas.copy, n, x, incx, y, incy);
}
template <class T>
void axpy(Queue& q, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, T* y, std::int64_t incy) {
  q.call<T>(q.cublas.axpy, n, alpha, x, incx, y, incy);
}
template <class T>
void axpby(Queue& q, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  axpby(q.stream, n, alpha.read(), vector(n, x, incx), beta.read(), vector(n, y, incy));
}

template <class T>
void dot(Queue& q, std::int64_t n, Scalar<T>, const T* x, std::int64_t incx, const T* y, std::int64_t incy, Result<T> result) {
  q.call<T>(q.cublas.dot, n, x, incx, y, incy, result);
}
template <class T>
void dotu(Queue& q, std::int64_t n, Scalar<T>, const T* x, std::int64_t incx, const T* y, std::int64_t incy, Result<T> result) {
  q.call<T>(q.cublas.dotu, n, x, incx, y, incy, result);
}
template <class T>
void dotc(Queue& q, std::int64_t n, Scalar<T>, const T* x, std::int64_t incx, const T* y, std::int64_t incy, Result<T> result) {
  q.call<T>(q.cublas.dotc, n, x, incx, y, incy, result);
}

/// body(address in device memory), then copies the result to the host if it is requested there.
template <class R, class Body>
void through_device(Queue& q, Result<R> result, const Body& body) {
  R* const there = result.on_device ? result.address : q.place<R>();
  body(there);
  if (result.on_device) return;
  q.stream.device().check(cudaMemcpyAsync(result.address, there, sizeof(R), cudaMemcpyDeviceToHost, q.stream.handle()), "cudaMemcpyAsync");
  q.stream.synchronize();
}
template <class T>
void sdsdot(Queue& q, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y, std::int64_t incy, Result<T> result) {
  through_device(q, result, [&](T* there) {
    extended_dot(q.stream, n, alpha.read(), vector(n, x, incx), vector(n, y, incy), q.cublas_stream.partial(), there, nullptr);
  });
}
template <class T>
void dsdot(Queue& q, std::int64_t n, Scalar<T>, const T* x, std::int64_t incx, const T* y, std::int64_t incy, Result<double> result) {
  through_device(q, result, [&](double* there) {
    extended_dot(q.stream, n, {0, nullptr}, vector(n, x, incx), vector(n, y, incy), q.cublas_stream.partial(), nullptr, there);
  });
}

template <class T>
void nrm2(Queue& q, std::int64_t n, const T* x, std::int64_t incx, Result<sdk::Real<T>> result) {
  through_device(q, result, [&](sdk::Real<T>* there) { norm(q.stream, n, vector(n, x, incx), q.cublas_stream.partial(), there); });
}
template <class T>
void asum(Queue& q, std::int64_t n, const T* x, std::int64_t incx, Result<sdk::Real<T>> result) {
  q.call<T>(q.cublas.asum, n, x, incx, result);
}

/// cuBLAS returns 1 for the first index and 0 for none.
void subtract_1(Queue& q, Result<std::int64_t> index) {
  if (index.on_device) {
    count_from_0(q.stream, index.address);
  } else {
    *index.address -= 1;
  }
}
template <class T>
void iamax(Queue& q, std::int64_t n, const T* x, std::int64_t incx, Result<std::int64_t> index) {
  q.call<T>(q.cublas.iamax, n, x, incx, index);
  subtract_1(q, index);
}
template <class T>
void iamin(Queue& q, std::int64_t n, const T* x, std::int64_t incx, Result<std::int64_t> index) {
  q.call<T>(q.cublas.iamin, n, x, incx, index);
  subtract_1(q, index);
}

}  // namespace
}  // namespace blas
TENON_CUDA_BLAS(rotg)
TENON_CUDA_BLAS(rotmg)
TENON_CUDA_BLAS(rot)
TENON_CUDA_BLAS(rotm)
TENON_CUDA_BLAS(swap)
TENON_CUDA_BLAS(scal)
TENON_CUDA_BLAS(rscal)
TENON_CUDA_BLAS(copy)
TENON_CUDA_BLAS(axpy)
TENON_CUDA_BLAS(axpby)
TENON_CUDA_BLAS(dot)
TENON_CUDA_BLAS(dotu)
TENON_CUDA_BLAS(dotc)
TENON_CUDA_BLAS(sdsdot)
TENON_CUDA_BLAS(dsdot)
TENON_CUDA_BLAS(nrm2)
TENON_CUDA_BLAS(asum)
TENON_CUDA_BLAS(iamax)
TENON_CUDA_BLAS(iamin)
}  // namespace tenon::cuda
