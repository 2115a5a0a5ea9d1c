// SPDX-License-Identifier: Apache-2.0
// bench/openblas_peer.h - the system's OpenBLAS, called directly, to compare our matrix products and BLAS calls with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tenon::bench {

/// Row-major C = op(A) op(B), A (m,k) and B (k,n) after op.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

class OpenBlasPeer {
 public:
  /// Opens Debian's pthread build, or else its serial one. Returns null if neither is found; `out_absent` then has the searched paths. The
  /// library stays open, because its threads keep running.
  static std::unique_ptr<OpenBlasPeer> open(int threads, std::string& out_absent);

  /// "OpenBLAS 0.3.21 (...), 2 threads".
  const std::string& name() const { return name_; }
  /// The actual number of threads: a serial build always has one.
  int threads() const { return threads_; }
  void product(const ProductShape& shape, const float* a, const float* b, float* c) const;
  void product(const ProductShape& shape, const double* a, const double* b, double* c) const;
  /// A function by name; null if there is none.
  void* symbol(const std::string& name) const;
  /// Sets the threads of subsequent calls; ignored by a serial build.
  void set_threads(int threads);

 private:
  template <class T>
  using Gemm = void (*)(int layout, int trans_a, int trans_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb,
                        T beta, T* c, int ldc);
  OpenBlasPeer() = default;

  Gemm<float> sgemm_ = nullptr;
  Gemm<double> dgemm_ = nullptr;
  void* library_ = nullptr;
  std::string path_;
  std::string name_;
  int threads_ = 1;
};

}  // namespace tenon::bench
