// SPDX-License-Identifier: Apache-2.0
// BLAS calls on addresses and on tensors, on both CPU backends.
#include "testing.h"

#include <cmath>
#include <complex>
#include <cstddef>
#include <stop_token>

#include <tenon/blas.h>

#include "exec/context_state.h"
#include "malloc_counter.h"

using namespace tenon;
using namespace tenon::test;
using C64 = std::complex<float>;

namespace {

constexpr const char* backends[] = {"reference:0", "openblas:0"};

Tensor matrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  return Tensor::of<float>(values, {rows, columns});
}

}  // namespace

TEST_CASE_FIXTURE(OnReference, "blas: a product on addresses, in both layouts") {
  for (const char* name : backends) {
    CAPTURE(name);
    const blas::Queue queue = context.device(name);
    const float a[] = {1, 2, 3, 4, 5, 6};      // row-major (2, 3); column-major (3, 2)
    const float b[] = {1, 0, 2, -1, 0.5F, 3};  // row-major (3, 2); column-major (2, 3)
    float c[4] = {NAN, NAN, NAN, NAN};
    blas::gemm<float>(queue, {.m = 2, .n = 2, .k = 3, .a = a, .lda = 3, .b = b, .ldb = 2, .c = c, .ldc = 2});
    CHECK(std::vector<float>(c, c + 4) == std::vector<float>{6.5F, 7, 17, 13});
    blas::gemm<float>(queue, {.layout = blas::Layout::column_major,
                              .trans_a = blas::Op::trans,
                              .trans_b = blas::Op::trans,
                              .m = 2,
                              .n = 2,
                              .k = 3,
                              .alpha = 2,
                              .a = a,
                              .lda = 3,
                              .b = b,
                              .ldb = 2,
                              .beta = -1,
                              .c = c,
                              .ldc = 2});
    CHECK(std::vector<float>(c, c + 4) == std::vector<float>{6.5F, 27, -3, 13});
  }
}

TEST_CASE_FIXTURE(OnReference, "blas: results of level 1 go to the host or to the device") {
  for (const char* name : backends) {
    CAPTURE(name);
    const Device device = context.device(name);
    const blas::Queue queue = device;
    const double x[] = {3, -4, 0}, y[] = {1, 2, 3};
    double dot = 0, norm = 0;
    std::int64_t index = 7;
    blas::dot<double>(queue, {.n = 3, .x = x, .y = y, .result = &dot});
    blas::nrm2<double>(queue, {.n = 2, .x = x, .result = &norm});
    blas::iamax<double>(queue, {.n = 3, .x = x, .index = &index});
    CHECK(dot == -5);
    CHECK(norm == 5);
    CHECK(index == 1);
    const Tensor there = device.empty(DType::f64, {});
    double* const address = reinterpret_cast<double*>(static_cast<std::uintptr_t>(there.address()));
    blas::asum<double>(queue, {.n = 3, .x = x, .result = blas::Result<double>::on_device(address)});
    double z[] = {1, 1, 1};
    blas::axpy<double>(queue, {.n = 3, .alpha = blas::Scalar<double>::on_device(address), .x = y, .y = z});
    queue.synchronize();
    CHECK(there.item() == 7);
    CHECK(z[2] == 22);
  }
}

TEST_CASE_FIXTURE(OnReference, "blas: views of tensors are read in place") {
  for (const char* name : backends) {
    CAPTURE(name);
    const blas::Queue queue = context.device(name);
    const Tensor a = matrix({1, 2, 3, 4, 5, 6}, 2, 3), b = matrix({1, 0, 2, -1, 0.5F, 3}, 2, 3);
    Tensor c = Tensor::full(DType::f32, {2, 2}, NAN);
    blas::gemm(queue, 1, a, b.transpose(0, 1), 0, c);
    CHECK(c.to_vector<float>() == std::vector<float>{7, 9, 16, 16.5F});
    // The same into a column-major result.
    Tensor d = Tensor::full(DType::f32, {2, 2}, NAN);
    blas::gemm(queue, 1, a, b, 0, d.transpose(0, 1), blas::Op::none, blas::Op::trans);
    CHECK(d.transpose(0, 1).to_vector<float>() == c.to_vector<float>());
    // Every second element in reverse.
    const Tensor x = Tensor::of<float>({9, 1, 9, 2, 9, 3}, {6}), y = Tensor::zeros(DType::f32, {2});
    blas::gemv(queue, 1, a, x.slice(0, 5, -1, -2), 0, y);
    CHECK(y.to_vector<float>() == std::vector<float>{3 + 4 + 3, 12 + 10 + 6});
    CHECK(blas::dot(queue, x.slice(0, 1, 6, 2), x.slice(0, 0, 5, 2)).item() == 54);
    CHECK(blas::iamax(queue, x).item() == 0);
    CHECK(blas::nrm2(queue, x.flip(0)).item() == doctest::Approx(std::sqrt(257.0)));
    // A submatrix of a larger matrix: there are gaps between its rows.
    Tensor wide = Tensor::zeros(DType::f32, {4, 5});
    blas::ger(queue, 2, y, y, wide.narrow(0, 1, 2).narrow(1, 2, 2));
    CHECK(wide.select(0, 1).to_vector<float>() == std::vector<float>{0, 0, 200, 560, 0});
  }
}

TEST_CASE_FIXTURE(OnReference, "blas: a triangle of a transposed view is the other triangle") {
  for (const char* name : backends) {
    CAPTURE(name);
    const blas::Queue queue = context.device(name);
    const Tensor a = matrix({2, NAN, NAN, 1, 4, NAN, 3, -1, 5}, 3, 3);  // its lower triangle
    const Tensor dense = matrix({2, 0, 0, 1, 4, 0, 3, -1, 5}, 3, 3);
    const Tensor x = matrix({1, 2, 3, 4, 5, 6}, 3, 2);
    Tensor b = Tensor::empty(DType::f32, {3, 2}), solved = Tensor::empty(DType::f32, {3, 2});
    blas::gemm(queue, 1, dense, x, 0, solved);
    blas::trsm(queue, blas::Side::left, blas::Uplo::lower, 1, a, solved);
    CHECK(all_close(solved, x));
    // A' x through the view: its upper triangle.
    Tensor product = Tensor::empty(DType::f32, {3, 2});
    blas::gemm(queue, 1, dense.transpose(0, 1), x, 0, product);
    b.copy_from(x);
    blas::trmm(queue, blas::Side::left, blas::Uplo::upper, 1, a.transpose(0, 1), b);
    CHECK(all_close(b, product));
    // A symmetric matrix from the same triangle, in either view.
    Tensor symmetric = Tensor::empty(DType::f32, {3, 2}), other = Tensor::empty(DType::f32, {3, 2});
    blas::symm(queue, blas::Side::left, blas::Uplo::lower, 1, a, x, 0, symmetric);
    blas::symm(queue, blas::Side::left, blas::Uplo::upper, 1, a.transpose(0, 1), x, 0, other);
    CHECK(equal(symmetric, other));
    CHECK(symmetric.select(0, 0).to_vector<float>() == std::vector<float>{2 + 3 + 15, 4 + 4 + 18});
  }
}

TEST_CASE_FIXTURE(OnReference, "blas: complex tensors with and without conjugation") {
  for (const char* name : backends) {
    CAPTURE(name);
    const blas::Queue queue = context.device(name);
    std::vector<C64> xs{{1, 2}, {0, -1}}, ys{{2, 0}, {1, 1}};
    const Tensor x = Tensor::borrow(xs.data(), DType::c64, {2}), y = Tensor::borrow(ys.data(), DType::c64, {2});
    const auto value = [](const Tensor& t) { return *static_cast<const C64*>(t.to_host().raw()); };
    CHECK(value(blas::dot(queue, x, y)) == C64(3, 3));
    CHECK(value(blas::dotc(queue, x, y)) == C64(1, -3));
    CHECK(blas::asum(queue, x).item() == 4);
    blas::scal(queue, {0, 1}, y);
    CHECK(ys == std::vector<C64>{{0, 2}, {-1, 1}});
    blas::scal(queue, 2, y);
    CHECK(ys == std::vector<C64>{{0, 4}, {-2, 2}});
  }
}

TEST_CASE_FIXTURE(OnReference, "blas: unsupported views are rejected with names and shapes") {
  const blas::Queue queue = context.device("reference:0");
  const Tensor a = matrix({1, 2, 3, 4, 5, 6}, 2, 3), c = Tensor::zeros(DType::f32, {2, 2});
  CHECK_ERROR_CONTAINS("gemm: op(A) (2, 3) times op(B) (2, 3) does not give C f32(2,2)", blas::gemm(queue, 1, a, a, 0, c));
  CHECK_ERROR_CONTAINS("has strides (3, 2)", blas::gemm(queue, 1, a.slice(1, 0, 3, 2), c, 0, c));
  CHECK_ERROR_CONTAINS("alpha: expected a real number for real operands, got the imaginary part", blas::gemm(queue, {1, 1}, c, c, 0, c));
  CHECK_ERROR_CONTAINS("expected dtype f32, f64, c64 or c128, got i32", blas::scal(queue, 1, Tensor::zeros(DType::i32, {2})));
  CHECK_ERROR_CONTAINS("a square matrix", blas::symv(queue, blas::Uplo::upper, 1, a, a.select(0, 0), 0, a.select(0, 1)));
  CHECK_ERROR_CONTAINS("x: expected a vector of rank 1, got f32(2,3)", blas::dot(queue, a, a));
  CHECK_ERROR_CONTAINS("x has 3 elements, y 2", blas::dot(queue, a.select(0, 0), c.select(0, 0)));
}

TEST_CASE_FIXTURE(OnReference, "blas: a backend without BLAS or without a routine is reported") {
  const exec::DeviceEntry& entry = context.state()->entries[find_device(parse_device_name("reference"), context.state()->available)];
  const blas::Queue queue = context.device("reference:0");
  CHECK(blas::offers(queue, blas::Routine::gemm));
  float x[2] = {1, 2};
  tenon_blas_table empty{};
  empty.struct_size = sizeof empty;
  auto* const table = const_cast<tenon_backend_table*>(&entry.loaded->backend->table());
  const tenon_blas_table* const whole = table->blas;
  const std::vector<const tenon_blas_table*> poor{&empty, nullptr};
  for (const tenon_blas_table* slots : poor) {
    table->blas = slots;
    const blas::Queue without = context.device("reference:0");
    CHECK_FALSE(blas::offers(without, blas::Routine::scal));
    const std::string text = message_of([&] { blas::scal<float>(without, {.n = 2, .alpha = 3, .x = x}); });
    CHECK(contains(text, slots == nullptr ? "scal: the backend of 'reference:0' has no BLAS" : "does not offer it"));
  }
  table->blas = whole;
  CHECK(x[0] == 1);
}

TEST_CASE("blas: a queue states math, determinism and the run of its calls") {
  static tenon_blas_call seen;
  Config config = test_config();
  config.precision = Precision::tf32;
  config.deterministic = true;
  const Context context{config};
  const exec::DeviceEntry& entry = context.state()->entries[find_device(parse_device_name("reference"), context.state()->available)];
  auto* const table = const_cast<tenon_backend_table*>(&entry.loaded->backend->table());
  const tenon_blas_table* const whole = table->blas;
  tenon_blas_table watched = *whole;
  watched.scal = [](const tenon_blas_call* call, const tenon_blas_scal_args*, tenon_error*) -> tenon_status {
    seen = *call;
    return TENON_OK;
  };
  watched.scal_dtypes = TENON_DTYPES_sd;
  table->blas = &watched;
  const Device device = context.device("reference:0");
  float x = 1;
  blas::scal<float>(device, {.n = 1, .x = &x});
  CHECK(seen.struct_size == sizeof seen);
  CHECK(seen.needs == 0);
  CHECK(seen.dtype == TENON_DTYPE_F32);
  CHECK(seen.math == TENON_MATH_TF32);
  CHECK(seen.deterministic == 1);
  blas::scal<float>({device, {.precision = Precision::float32, .deterministic = false}}, {.n = 1, .x = &x});
  CHECK(seen.math == TENON_MATH_STRICT);
  CHECK(seen.deterministic == 0);
  CHECK(seen.run == nullptr);
  std::stop_source source;
  const blas::Queue limited(device, {.run = {.stop = source.get_token(), .threads = 2, .priority = 3}});
  blas::scal<float>(limited, {.n = 1, .x = &x});
  REQUIRE(seen.run != nullptr);
  CHECK(seen.run->threads == 2);
  CHECK(seen.run->priority == 3);
  source.request_stop();
  seen.run = nullptr;
  CHECK_ERROR_CONTAINS("scal on 'reference:0': cancelled before the call", blas::scal<float>(limited, {.n = 1, .x = &x}));
  CHECK(seen.run == nullptr);
  CHECK(blas::offers(device, blas::Routine::scal, DType::f64));
  CHECK_FALSE(blas::offers(device, blas::Routine::scal, DType::c64));
  C64 z = 1;
  CHECK_ERROR_CONTAINS("scal: the backend of 'reference:0' expects f32 or f64, got c64", blas::scal<C64>(device, {.n = 1, .x = &z}));
  table->blas = whole;
}

TEST_CASE_FIXTURE(OnReference, "blas: arguments behind the end of an older sender's record are 0") {
  const blas::Queue queue = context.device("reference:0");
  const float alpha = 1, x[] = {1, 2};
  float y = 10;
  const auto address = [](const float* value) { return std::uint64_t{reinterpret_cast<std::uintptr_t>(value)}; };
  tenon_blas_call call = queue.call();
  call.dtype = TENON_DTYPE_F32;
  const tenon_blas_axpy_args args{.struct_size = offsetof(tenon_blas_axpy_args, incy),
                                  .reserved = 0,
                                  .n = 2,
                                  .alpha = {address(&alpha), 0, 0},
                                  .x = address(x),
                                  .incx = 1,
                                  .y = address(&y),
                                  .incy = 1000000};
  CHECK(queue.table()->axpy(&call, &args, nullptr) == TENON_OK);
  CHECK(y == 13);
}

TEST_CASE_FIXTURE(OnReference, "blas: sizes beyond the integers of OpenBLAS are an error, not a wrong answer") {
  const blas::Queue queue = context.device("openblas:0");
  float x[2] = {1, 2};
  const std::string text = message_of([&] { blas::scal<float>(queue, {.n = std::int64_t{3} << 31, .alpha = 2, .x = x, .incx = 1}); });
  CHECK(contains(text, "scal on 'openblas:0'"));
  CHECK(contains(text, "2147483647"));
  CHECK(x[0] == 1);
}

#ifndef TENON_MALLOC_IS_TAKEN
TEST_CASE_FIXTURE(OnReference, "blas: a call allocates nothing") {
  const blas::Queue queue = context.device("openblas:0");
  const Tensor a = Tensor::full(DType::f32, {256, 256}, 1), b = Tensor::full(DType::f32, {256, 256}, 1);
  const Tensor c = Tensor::zeros(DType::f32, {256, 256});
  const auto pointer = [](const Tensor& t) { return reinterpret_cast<float*>(static_cast<std::uintptr_t>(t.address())); };
  float sum = 0;
  const auto calls = [&] {
    blas::gemm<float>(
        queue, {.m = 256, .n = 256, .k = 256, .a = pointer(a), .lda = 256, .b = pointer(b), .ldb = 256, .c = pointer(c), .ldc = 256});
    blas::gemv<float>(queue, {.m = 256, .n = 256, .a = pointer(a), .lda = 256, .x = pointer(b), .y = pointer(c)});
    blas::axpy<float>(queue, {.n = 1000, .x = pointer(a), .y = pointer(c)});
    blas::dot<float>(queue, {.n = 1000, .x = pointer(a), .y = pointer(b), .result = &sum});
  };
  calls();
  const long before = allocations;
  for (int i = 0; i < 10; ++i) calls();
  CHECK(allocations == before);
}
#endif
