// SPDX-License-Identifier: Apache-2.0
// FP8 of the emulated cuBLASLt: its numbers, and which products it has.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "backends/cuda/libraries/cublas_lt.h"
#include "cuda_host.h"
#include "cuda_testing.h"
#include "fp8_codes.h"
#include "numbers.h"

namespace tenon::cuda {
namespace {

/// A product of 16 x 16 x 16 that cuBLASLt may or may not have.
LtProblem lt_problem() {
  return {.type = CUDA_R_8F_E4M3,
          .result_type = CUDA_R_16BF,
          .compute = CUBLAS_COMPUTE_32F,
          .epilogue = CUBLASLT_EPILOGUE_DEFAULT,
          .batch = 1,
          .a = {16, 16, 16, 0, 16, true},
          .b = {16, 16, 16, 0, 16, false},
          .d = {16, 16, 16, 0, 16, false},
          .workspace_bytes = 0};
}

}  // namespace

TEST_CASE("cuda emulation: cuBLASLt reads all codes of E4M3 and E5M2") {
  for (int code = 0; code < 256; ++code) {
    CAPTURE(code);
    const double e4m3 = emulation::from_e4m3(static_cast<std::uint8_t>(code)), e5m2 = emulation::from_e5m2(static_cast<std::uint8_t>(code));
    CHECK((e4m3 == test::e4m3_number(code) || (std::isnan(e4m3) && std::isnan(test::e4m3_number(code)))));
    CHECK((e5m2 == test::e5m2_number(code) || (std::isnan(e5m2) && std::isnan(test::e5m2_number(code)))));
    if (!std::isnan(e4m3)) CHECK(std::signbit(e4m3) == (code >= 128));
  }
}

TEST_CASE("cuda emulation: cuBLASLt has no products of FP8 that NVIDIA's documentation excludes") {
  Bench bench;
  LtDevice& library = bench.device.attached.get<LtDevice>(bench.device);
  const auto has = [&](const auto& change) {
    LtProblem problem = lt_problem();
    change(problem);
    return library.can_multiply(problem, {});
  };
  CHECK(has([](LtProblem&) {}));
  CHECK(has([](LtProblem& p) { p.result_type = CUDA_R_32F; }));
  CHECK(has([](LtProblem& p) { p.epilogue = CUBLASLT_EPILOGUE_BIAS; }));
  CHECK_FALSE(has([](LtProblem& p) { p.a.transposed = false; }));
  CHECK_FALSE(has([](LtProblem& p) { p.b.transposed = true; }));
  CHECK_FALSE(has([](LtProblem& p) { p.type = CUDA_R_8F_E5M2; }));  // for both factors
  CHECK_FALSE(has([](LtProblem& p) { p.compute = CUBLAS_COMPUTE_32F_FAST_16BF; }));
  CHECK_FALSE(has([](LtProblem& p) { p.a.rows = p.b.rows = p.a.ld = p.b.ld = 8; }));
  CHECK_FALSE(has([](LtProblem& p) { p.a.columns = p.d.rows = p.d.ld = 24; }));
  CHECK_FALSE(has([](LtProblem& p) { p.d.ld = 24; }));
  CHECK_FALSE(has([](LtProblem& p) { p.result_type = CUDA_R_64F; }));
  CHECK_FALSE(has([](LtProblem& p) { p.batch = 2, p.a.batch_stride = 8, p.d.batch_stride = 256; }));

  Stream stream(bench.device);
  const DeviceBuffer memory(bench.device, stream, 4096);
  const LtOperands aligned{memory.at(), memory.at(256), memory.at(1024), memory.at(1024), nullptr, nullptr, nullptr, nullptr};
  CHECK(error_of([&] { library.multiply(stream, lt_problem(), aligned, 1, 0); }).status() == TENON_OK);
  LtOperands unaligned = aligned;
  unaligned.b = memory.at(264);
  LtProblem any = lt_problem();
  any.b.alignment_bytes = 8;
  CHECK(error_of([&] { library.multiply(stream, any, unaligned, 1, 0); }).status() != TENON_OK);
  stream.synchronize();
}

TEST_CASE("cuda emulation: cuBLASLt has no products of FP8 on GPUs below compute capability 8.9") {
  ::setenv("TENON_CUDA_EMULATION_CAPABILITY", "80", 1);
  Bench bench;
  CHECK_FALSE(bench.device.attached.get<LtDevice>(bench.device).can_multiply(lt_problem(), {}));
  ::unsetenv("TENON_CUDA_EMULATION_CAPABILITY");
}

}  // namespace tenon::cuda
