// bench/openblas_peer.h - the system's own OpenBLAS, called directly: what products and BLAS calls of ours are held against.
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
  /// Opens Debian's pthread build, or else its serial one. Null if neither is there: `out_absent` says what was looked for. The library
  /// stays open: threads of its own run in it.
  static std::unique_ptr<OpenBlasPeer> open(int threads, std::string& out_absent);

  /// "OpenBLAS 0.3.21 (...), 2 threads".
  const std::string& name() const { return name_; }
  /// What it really uses: a serial build has one thread whatever was asked for.
  int threads() const { return threads_; }
  void product(const ProductShape& shape, const float* a, const float* b, float* c) const;
  void product(const ProductShape& shape, const double* a, const double* b, double* c) const;
  /// Any of its functions; null if it has none of that name.
  void* symbol(const std::string& name) const;
  /// Of all its calls from now on; a serial build has one whatever is asked for.
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
