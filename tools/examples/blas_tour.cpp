// BLAS on every device that computes in host memory: a least-squares fit with routines of levels 1, 2 and 3, on tensors and on addresses.
#include <cmath>
#include <cstdio>

#include <tenon/blas.h>

using namespace tenon;

namespace {

/// Fits a straight line: solves the normal equations X'X w = X'y by a product, a Cholesky factor and two triangular solves.
void fit_line(const blas::Queue& queue) {
  const Tensor x = Tensor::of<double>({1, 0, 1, 1, 1, 2, 1, 3}, {4, 2}), y = Tensor::of<double>({1.1, 2.9, 5.1, 6.9}, {4});
  Tensor normal = Tensor::zeros(DType::f64, {2, 2}), w = Tensor::zeros(DType::f64, {2});

  // Level 3: the lower triangle of X'X. A transposed view is a transposed operand.
  blas::syrk(queue, blas::Uplo::lower, 1, x.transpose(0, 1), 0, normal);
  // Level 2: X'y.
  blas::gemv(queue, 1, x, y, 0, w, blas::Op::trans);
  // The Cholesky factor by hand, then L L' w = X'y by two triangular solves.
  double* const n = normal.data<double>();
  n[0] = std::sqrt(n[0]);
  n[2] /= n[0];
  n[3] = std::sqrt(n[3] - n[2] * n[2]);
  blas::trsv(queue, blas::Uplo::lower, normal, w);
  blas::trsv(queue, blas::Uplo::lower, normal, w, blas::Op::trans);
  std::printf("  line  y = %.2f + %.2f x\n", w.data<double>()[0], w.data<double>()[1]);

  // Level 1: the residual y - X w and its length. Results stay on the device until they are read.
  blas::gemv(queue, -1, x, w, 1, y);
  std::printf("  residual %.4f, largest at %g\n", blas::nrm2(queue, y).item(), blas::iamax(queue, y).item());
}

/// BLAS on addresses, with named arguments.
void addresses(const blas::Queue& queue) {
  const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 0, 1, 1, 1};  // (2, 3) and (3, 2), row by row
  float c[4] = {};
  blas::gemm<float>(queue, {.m = 2, .n = 2, .k = 3, .a = a, .lda = 3, .b = b, .ldb = 2, .c = c, .ldc = 2});
  float dot = 0;
  blas::dot<float>(queue, {.n = 3, .x = a, .y = a, .incy = -1, .result = &dot});  // y backwards
  std::printf("  gemm  %g %g %g %g, dot %g\n", c[0], c[1], c[2], c[3], dot);
  try {
    blas::gemm<float>(queue, {.m = 2, .n = 2, .k = 3, .a = a, .lda = 2, .b = b, .ldb = 2, .c = c, .ldc = 2});
  } catch (const blas::ArgumentError& e) {
    std::printf("  error: %s\n", e.what());
  }
}

}  // namespace

int main() {
  const Context context;
  for (const DeviceInfo& info : context.devices()) {
    const blas::Queue queue = context.device(info.name);
    const bool host_addressable = (info.flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0;  // operands here are host memory
    if (!blas::offers(queue, blas::Routine::gemm) || !host_addressable) continue;
    std::printf("%s\n", info.name.c_str());
    fit_line(queue);
    addresses(queue);
  }
}
