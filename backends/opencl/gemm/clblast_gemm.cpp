// SPDX-License-Identifier: Apache-2.0
#include "gemm/clblast_gemm.h"

#include <algorithm>
#include <bit>
#include <complex>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "device/process_guard.h"

namespace tenon::opencl {
namespace {

// CLBlast's name of T, and its functions for T.
#define TENON_CLBLAST_GEMM(T, native, letter)                                             \
  native scalar(T x) {                                                                    \
    return std::bit_cast<native>(x);                                                      \
  }                                                                                       \
  auto functions(const Clblast& all, T) {                                                 \
    return std::pair(all.CLBlast##letter##gemm, all.CLBlast##letter##gemmStridedBatched); \
  }
TENON_CLBLAST_GEMM(float, float, S)
TENON_CLBLAST_GEMM(double, double, D)
TENON_CLBLAST_GEMM(std::complex<float>, cl_float2, C)
TENON_CLBLAST_GEMM(std::complex<double>, cl_double2, Z)

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

template <class T>
bool clblast_gemm(Stream& stream, const ClblastGemm<T>& p) {
  if (!worth_clblast(p.m, p.n, p.k, p.batch)) return false;
  for (const auto* x : {&p.a, &p.b, &p.c}) {
    // Its offsets are in elements and its strides unsigned; its kernels compute indices in 32 bits.
    if (x->data.offset % sizeof(T) != 0 || x->stride < 0) return false;
    const std::int64_t first = static_cast<std::int64_t>(x->data.offset / sizeof(T)) + (p.batch - 1) * x->stride;
    if (first + std::max({p.m, p.n, p.k}) * x->ld > std::numeric_limits<std::int32_t>::max()) return false;
  }
  Device& device = stream.device();
  const Clblast* const library = clblast(device.host);
  if (library == nullptr) return false;
  const auto at = [](const auto& x) { return x.data.offset / sizeof(T); };
  const auto [gemm, gemm_strided_batched] = functions(*library, T());
  const std::size_t m = size(p.m), n = size(p.n), k = size(p.k);
  cl_command_queue queue = stream.queue();
  const std::lock_guard lock(device.submission);  // its kernels are shared by the threads too
  std::optional<ProcessGuard> guard;              // it compiles at its first call
  if (!device.clblast_called) guard.emplace();
  device.clblast_called = true;
  if (p.batch == 1) {
    check(gemm(p.layout, p.a.trans, p.b.trans, m, n, k, scalar(p.alpha), p.a.data.buffer, at(p.a), size(p.a.ld), p.b.data.buffer, at(p.b),
               size(p.b.ld), scalar(p.beta), p.c.data.buffer, at(p.c), size(p.c.ld), &queue, nullptr),
          "CLBlast's gemm");
  } else {
    check(gemm_strided_batched(p.layout, p.a.trans, p.b.trans, m, n, k, scalar(p.alpha), p.a.data.buffer, at(p.a), size(p.a.ld),
                               size(p.a.stride), p.b.data.buffer, at(p.b), size(p.b.ld), size(p.b.stride), scalar(p.beta), p.c.data.buffer,
                               at(p.c), size(p.c.ld), size(p.c.stride), size(p.batch), &queue, nullptr),
          "CLBlast's gemm_strided_batched");
  }
  return true;
}
template bool clblast_gemm(Stream&, const ClblastGemm<float>&);
template bool clblast_gemm(Stream&, const ClblastGemm<double>&);
template bool clblast_gemm(Stream&, const ClblastGemm<std::complex<float>>&);
template bool clblast_gemm(Stream&, const ClblastGemm<std::complex<double>>&);

}  // namespace tenon::opencl
