// SPDX-License-Identifier: Apache-2.0
// BLAS on a GPU beyond the conformance cases: scalars in host and device memory, batches larger than a table, panels.
#include <tenon/blas.h>

#include <complex>
#include <vector>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::floats;
using test::gpu_config;

template <class T>
T* at(const Tensor& t, std::int64_t element = 0) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(t.address())) + element;
}
template <class T>
Tensor on_device(const Device& device, const std::vector<T>& values) {
  return Tensor::of<T>(values, {static_cast<std::int64_t>(values.size())}).to(device);
}

TEST_CASE("gpu blas: alpha and beta may be in different memories") {
  const Context context(gpu_config());
  const Device device = context.device("cuda:0");
  const Tensor a = on_device<float>(device, {1, 2, 3, 4}), x = on_device<float>(device, {1, 1}), two = on_device<float>(device, {2});
  Tensor y = on_device<float>(device, {10, 20});
  blas::arguments::gemv<float> p{.m = 2, .n = 2, .a = at<float>(a), .lda = 2, .x = at<float>(x), .y = at<float>(y)};
  p.alpha = blas::Scalar<float>::on_device(at<float>(two));
  p.beta = 0.5F;
  blas::gemv<float>(device, p);
  CHECK(floats(y) == std::vector<float>{11, 24});
}

TEST_CASE("gpu blas: a conjugated product takes alpha and beta from the device as well") {
  using C = std::complex<float>;
  const Context context(gpu_config());
  const Device device = context.device("cuda:0");
  const Tensor numbers = on_device<float>(device, {0, 1, 1, 2, 3, -1, 0, 2, 5, 5});
  // y = alpha conj(a) x + beta y with single elements
  blas::arguments::gemv<C> p{.m = 1, .n = 1, .a = at<C>(numbers, 1), .lda = 1, .x = at<C>(numbers, 2), .y = at<C>(numbers, 4)};
  p.trans = blas::Op::conj;
  p.alpha = blas::Scalar<C>::on_device(at<C>(numbers));
  p.beta = blas::Scalar<C>::on_device(at<C>(numbers, 3));
  blas::gemv<C>(device, p);
  const C expected = C{0, 1} * std::conj(C{1, 2}) * C{3, -1} + C{0, 2} * C{5, 5};
  const std::vector<float> got = floats(numbers);
  CHECK(C{got[8], got[9]} == expected);
}

TEST_CASE("gpu blas: a result on the host is there when the call returns") {
  const Context context(gpu_config());
  const Device device = context.device("cuda:0");
  const Tensor x = on_device<float>(device, {1, 2, 3});
  float sum = 0;
  blas::arguments::dot<float> p{.n = 3, .x = at<float>(x), .y = at<float>(x)};
  p.alpha = 10;
  p.result = &sum;
  blas::sdsdot<float>(device, p);
  CHECK(sum == 24);
}

TEST_CASE("gpu blas: a batch may have any number of products") {
  const Context context(gpu_config());
  const Device device = context.device("cuda:0");
  constexpr std::int64_t count = 2500;  // more than two tables of addresses
  std::vector<float> values(count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor a = on_device(device, values), two = on_device<float>(device, {2});
  Tensor c = on_device(device, std::vector<float>(count, 1));
  std::vector<std::uint64_t> of_a, of_b, of_c;
  for (std::int64_t i = 0; i < count; ++i) {
    of_a.push_back(a.address() + sizeof(float) * static_cast<std::uint64_t>(i));
    of_b.push_back(two.address());
    of_c.push_back(c.address() + sizeof(float) * static_cast<std::uint64_t>(count - 1 - i));
  }
  blas::arguments::gemm_batched<float> p{
      .m = 1, .n = 1, .k = 1, .a = of_a.data(), .lda = 1, .b = of_b.data(), .ldb = 1, .c = of_c.data(), .ldc = 1};
  p.beta = 1.0F;
  p.batch = count;
  blas::gemm_batched<float>(device, p);
  const std::vector<float> got = floats(c);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[got.size() - 1 - i] == 2 * static_cast<float>(i) + 1);
}

TEST_CASE("gpu blas: gemmt's panels write one triangle and leave the other unchanged") {
  const Context context(gpu_config());
  const Device device = context.device("cuda:0");
  constexpr std::int64_t n = 300;  // a full and a partial panel
  std::vector<float> rows(n), columns(n);
  for (std::size_t i = 0; i < n; ++i) {
    rows[i] = static_cast<float>(i + 1);
    columns[i] = static_cast<float>(2 * i + 1);
  }
  const Tensor a = on_device(device, rows), b = on_device(device, columns);
  Tensor c = on_device(device, std::vector<float>(n * n, -1));
  for (const blas::Uplo uplo : {blas::Uplo::upper, blas::Uplo::lower}) {
    blas::arguments::gemm<float> p{.n = n, .k = 1, .a = at<float>(a), .lda = 1, .b = at<float>(b), .ldb = n, .c = at<float>(c), .ldc = n};
    p.uplo = uplo;
    blas::gemmt<float>(device, p);
    const std::vector<float> got = floats(c);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const bool written = i == j || (i < j) == (uplo == blas::Uplo::upper) || uplo == blas::Uplo::lower;
        wrong += got[static_cast<std::size_t>(i * n + j)] != (written ? static_cast<float>((i + 1) * (2 * j + 1)) : -1);
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace tenon
