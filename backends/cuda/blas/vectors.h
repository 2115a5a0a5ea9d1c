// SPDX-License-Identifier: Apache-2.0
// blas/vectors.h - vectors as operands of kernels, and calls on conjugated copies of vectors.
//
// conj(A) x for a stored A is conj(A conj(x)). Where cuBLAS has no such operation, and for Hermitian matrices in row-major order, which are
// the conjugates of what cuBLAS reads, the vectors are conjugated instead of the matrix: n elements, not n^2.
#pragma once

#include "blas/orientation.h"
#include "blas/routine.h"

namespace tenon::cuda::blas {

/// x(i), i < n, at i * inc; a negative inc counts from the array's end.
template <class T>
Lines<T> vector(std::int64_t n, T* x, std::int64_t inc) {
  return {inc < 0 && n > 0 ? x - (n - 1) * inc : x, inc, 0};
}

/// x = conj(x)
template <class T>
void conjugate_in_place(Queue& q, std::int64_t n, T* x, std::int64_t inc) {
  const Lines<T> all = vector(n, x, inc);
  conjugate<T>(q.stream, n, 1, {all.first, all.step, 0}, all);
}

/// A dense copy of conj(x), for calls on its stream.
template <class T>
class Conjugated {
 public:
  Conjugated(Queue& q, std::int64_t n, const T* x, std::int64_t inc) : stream_(q.stream) {
    stream_.device().enter();
    void* memory = nullptr;
    const auto size_bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (n > 0) stream_.device().check(cudaMallocAsync(&memory, size_bytes, stream_.handle()), "cudaMallocAsync");
    data_ = static_cast<T*>(memory);
    conjugate<T>(q.stream, n, 1, vector(n, x, inc), {data_, 1, 0});
  }
  ~Conjugated() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_.handle());
  }
  Conjugated(const Conjugated&) = delete;
  Conjugated& operator=(const Conjugated&) = delete;
  const T* data() const { return data_; }

 private:
  Stream& stream_;
  T* data_ = nullptr;
};

}  // namespace tenon::cuda::blas
