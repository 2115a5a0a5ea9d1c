// SPDX-License-Identifier: Apache-2.0
// The C API: BLAS and the log.
#include "capi_testing.h"

#include <algorithm>
#include <complex>

using namespace tenon::test;
using nlohmann::json;

namespace {

struct OnDevice {
  Owned<TenonContext> context = make_context();
  Owned<TenonDevice> device;
  OnDevice() { REQUIRE_OK(tenon_device_open(context, "reference:0", device.out())); }
};

template <class Record>
Record record() {
  Record r{};
  r.struct_size = sizeof r;
  return r;
}

tenon_scalar scalar(const void* value) {
  return {reinterpret_cast<std::uintptr_t>(value), 0, 0};
}
std::uint64_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

TEST_CASE_FIXTURE(OnDevice, "C API: BLAS on tensors") {
  const Owned<TenonTensor> a = make_tensor({1, 2, 3, 4, 5, 6}, {2, 3}), b = make_tensor({1, 0, 0, 1, 1, 1}, {3, 2}),
                           c = make_tensor({1, 1, 1, 1}, {2, 2}), x = make_tensor({3, 4}, {2}), y = make_tensor({1, 2}, {2});
  CHECK_OK(tenon_gemm(device, 2, a, 0, b, TENON_NO_TRANS, 10, c));
  CHECK(values_of(c) == std::vector<float>{18, 20, 30, 32});
  const Owned<TenonTensor> square = make_tensor(std::vector<float>(9), {3, 3});
  CHECK_OK(tenon_gemm(device, 1, a, TENON_TRANS, a, 0, 0, square));
  CHECK(values_of(square) == std::vector<float>{17, 22, 27, 22, 29, 36, 27, 36, 45});
  CHECK_OK(tenon_gemv(device, 1, c, TENON_TRANS, x, 0, y));
  CHECK(values_of(y) == std::vector<float>{174, 188});
  CHECK_OK(tenon_axpy(device, -1, x, y));
  CHECK(values_of(y) == std::vector<float>{171, 184});
  CHECK_OK(tenon_scal(device, 0.5, x));
  CHECK(values_of(x) == std::vector<float>{1.5, 2});
  Owned<TenonTensor> result;
  CHECK_OK(tenon_dot(device, x, x, result.out()));
  CHECK(values_of(result) == std::vector<float>{6.25});
  CHECK_OK(tenon_nrm2(device, x, result.out()));
  CHECK(values_of(result) == std::vector<float>{2.5});
}

TEST_CASE_FIXTURE(OnDevice, "C API: BLAS routines by their records, for real and complex numbers") {
  const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, one = 1;
  double c[4] = {};
  auto gemm = record<tenon_blas_gemm_args>();
  gemm.m = gemm.n = gemm.k = 2;
  gemm.alpha = scalar(&one);
  gemm.a = address(a);
  gemm.b = address(b);
  gemm.c = address(c);
  gemm.lda = gemm.ldb = gemm.ldc = 2;
  CHECK_OK(tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_F64, &gemm, nullptr));
  CHECK(std::vector<double>(c, c + 4) == std::vector<double>{19, 22, 43, 50});
  gemm.trans_a = TENON_TRANS;
  gemm.layout = TENON_LAYOUT_COLUMN_MAJOR;
  CHECK_OK(tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_F64, &gemm, nullptr));
  CHECK(std::vector<double>(c, c + 4) == std::vector<double>{17, 39, 23, 53});  // of columns: c[j][i] = sum a[i][k] b[j][k]

  using C = std::complex<float>;
  const C v[] = {{1, 2}, {0, 1}};
  C h[4] = {};
  const float half = 0.5;  // alpha of herk is real: only 4 bytes may be read
  auto herk = record<tenon_blas_syrk_args>();
  herk.n = 2;
  herk.k = 1;
  herk.alpha = scalar(&half);
  herk.a = address(v);
  herk.lda = 1;
  herk.c = address(h);
  herk.ldc = 2;
  CHECK_OK(tenon_blas(device, TENON_BLAS_herk, TENON_DTYPE_C64, &herk, nullptr));
  CHECK(h[0] == C(2.5, 0));
  CHECK(h[1] == C(1, -0.5));

  std::int64_t index = -1;
  auto reduce = record<tenon_blas_reduce_args>();
  reduce.n = 4;
  reduce.x = address(b);
  reduce.incx = 1;
  reduce.result = scalar(&index);
  CHECK_OK(tenon_blas(device, TENON_BLAS_iamax, TENON_DTYPE_F64, &reduce, nullptr));
  CHECK(index == 3);
  const float p[] = {1, 2}, q[] = {3, 4};
  double product = 0;
  auto dot = record<tenon_blas_dot_args>();
  dot.n = 2;
  dot.x = address(p);
  dot.y = address(q);
  dot.incx = dot.incy = 1;
  dot.result = scalar(&product);
  CHECK_OK(tenon_blas(device, TENON_BLAS_dsdot, TENON_DTYPE_F32, &dot, nullptr));
  CHECK(product == 11);
  float x = 3, y = 4, cosine = 0, sine = 0;
  auto rotg = record<tenon_blas_rotg_args>();
  rotg.a = scalar(&x);
  rotg.b = scalar(&y);
  rotg.c = scalar(&cosine);
  rotg.s = scalar(&sine);
  CHECK_OK(tenon_blas(device, TENON_BLAS_rotg, TENON_DTYPE_F32, &rotg, nullptr));
  CHECK(x == doctest::Approx(5));
  CHECK(cosine == doctest::Approx(0.6));
  CHECK(sine == doctest::Approx(0.8));
}

TEST_CASE_FIXTURE(OnDevice, "C API: wrong arguments of BLAS are errors by the rules of the reference") {
  double c[4] = {};
  auto gemm = record<tenon_blas_gemm_args>();
  gemm.m = gemm.n = gemm.k = 2;
  gemm.a = gemm.b = gemm.c = address(c);
  gemm.lda = 1;
  gemm.ldb = gemm.ldc = 2;
  CHECK_FAILS_WITH("INVALID_ARGUMENT: gemm: argument 8, lda, is 1: expected at least 2",
                   tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_F64, &gemm, nullptr));
  gemm.trans_a = 7;
  CHECK_FAILS_WITH("gemm: argument 1, trans_a, is 7", tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_F64, &gemm, nullptr));
  CHECK_FAILS_WITH("UNSUPPORTED: gemm: expected one of the dtypes sdcz",
                   tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_I32, &gemm, nullptr));
  CHECK_FAILS_WITH("UNSUPPORTED: her: expected one of the dtypes cz", tenon_blas(device, TENON_BLAS_her, TENON_DTYPE_F32, &gemm, nullptr));
  CHECK_FAILS_WITH("routine: expected a TENON_BLAS_* value, got 0", tenon_blas(device, TENON_BLAS_NONE, TENON_DTYPE_F64, &gemm, nullptr));
  CHECK_FAILS_WITH("arguments: expected an address, got NULL", tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_F64, nullptr, nullptr));
  CHECK_FAILS_WITH("device: expected a device, got NULL", tenon_blas(nullptr, TENON_BLAS_gemm, TENON_DTYPE_F64, &gemm, nullptr));
  const Owned<TenonTensor> a = make_tensor({1, 2, 3, 4}, {2, 2}), v = make_tensor({1, 2}, {2});
  CHECK_FAILS_WITH("trans_a: expected TENON_NO_TRANS", tenon_gemm(device, 1, a, 5, a, 0, 0, a));
  CHECK_FAILS_WITH("rank 2", tenon_gemm(device, 1, v, 0, a, 0, 0, a));
  Owned<TenonCancellation> cancellation;
  REQUIRE_OK(tenon_cancellation_create(cancellation.out()));
  REQUIRE_OK(tenon_cancel(cancellation));
  TenonRunOptions options{};
  options.struct_size = sizeof options;
  options.cancellation = cancellation;
  gemm.trans_a = 0;
  gemm.lda = 2;
  CHECK_FAILS_WITH("CANCELLED: gemm", tenon_blas(device, TENON_BLAS_gemm, TENON_DTYPE_F64, &gemm, &options));
}

TEST_CASE("C API: the list of BLAS routines is that of blas.def") {
  char* text = nullptr;
  REQUIRE_OK(tenon_blas_routines(&text));
  const json routines = parsed(text);
  CHECK(routines.size() > 50);
  const auto gemm = std::ranges::find_if(routines, [](const json& r) { return r["name"] == "gemm"; });
  REQUIRE(gemm != routines.end());
  CHECK((*gemm)["id"] == TENON_BLAS_gemm);
  CHECK((*gemm)["signature"] == "gemm");
  CHECK((*gemm)["dtypes"] == "sdcz");
}

TEST_CASE("C API: the log goes to the caller's function from the level on that is set") {
  struct Lines {
    std::vector<std::pair<std::uint32_t, std::string>> all;
  } lines;
  REQUIRE_OK(tenon_log_set_sink(
      [](void* user, std::uint32_t level, const char* text) { static_cast<Lines*>(user)->all.emplace_back(level, text); }, &lines));
  const std::string config = test_config_text() + "memory: {limit_mb: 1000000000}\n";
  const std::string loud = config.substr(0, config.find("logging:")) + "logging: {level: info}\nmemory: {limit_mb: 1000000000}\n";
  TenonContextOptions options{};
  options.struct_size = sizeof options;
  options.config = loud.c_str();
  Owned<TenonContext> context;
  REQUIRE_OK(tenon_context_create(&options, context.out()));
  REQUIRE_OK(tenon_log_set_sink(nullptr, nullptr));
  const auto warning = std::ranges::find_if(lines.all, [](const auto& line) { return line.first == TENON_LOG_WARNING; });
  REQUIRE(warning != lines.all.end());
  CHECK(warning->second.find("a limit of") != std::string::npos);
  CHECK_FAILS("INVALID_ARGUMENT: tenon_log_set_level: level: expected a TENON_LOG_* value, got 9", tenon_log_set_level(9));
  REQUIRE_OK(tenon_log_set_level(TENON_LOG_OFF));
}
