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

/// Elements of an operand in memory, for each entry of a batch: rows x columns as stored.
template <class T>
std::int64_t extent(const ClblastGemm<T>& p, const typename ClblastGemm<T>::Operand& x, std::int64_t rows, std::int64_t columns) {
  if (x.trans != CLBlastTransposeNo) std::swap(rows, columns);
  const bool by_rows = p.layout == CLBlastLayoutRowMajor;
  return (p.batch - 1) * x.stride + ((by_rows ? rows : columns) - 1) * x.ld + (by_rows ? columns : rows);
}

/// An operand as a buffer, and its first element there. Where a buffer may begin it gets one of its own: CLBlast copies matrices that are
/// at an offset.
class Region {
 public:
  Region(Device& device, const Place& place, std::size_t element_size, std::int64_t elements)
      : buffer(place.buffer), first(place.offset / element_size) {
    if (place.offset == 0 || place.offset % device.description().alignment_bytes != 0) return;
    const cl_buffer_region region{place.offset, static_cast<std::size_t>(elements) * element_size};
    cl_int error = CL_SUCCESS;
    own_ = api().clCreateSubBuffer(place.buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    device.check(error, "clCreateSubBuffer");
    buffer = own_;
    first = 0;
  }
  ~Region() {
    if (own_ != nullptr) api().clReleaseMemObject(own_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  cl_mem buffer;
  std::size_t first;

 private:
  cl_mem own_ = nullptr;
};

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

template <class T>
bool clblast_gemm(Stream& stream, const ClblastGemm<T>& p) {
  if (p.m * p.n * p.k < min_multiplications) return false;
  const std::int64_t a_extent = extent(p, p.a, p.m, p.k), b_extent = extent(p, p.b, p.k, p.n), c_extent = extent(p, p.c, p.m, p.n);
  for (const auto& [x, elements] : {std::pair(&p.a, a_extent), std::pair(&p.b, b_extent), std::pair(&p.c, c_extent)}) {
    // Its offsets are in elements and its strides unsigned; its kernels compute indices in 32 bits.
    if (x->data.offset % sizeof(T) != 0 || x->stride < 0) return false;
    if (static_cast<std::int64_t>(x->data.offset / sizeof(T)) + elements > std::numeric_limits<std::int32_t>::max()) return false;
  }
  Device& device = stream.device();
  const Clblast* const library = clblast(device.host);
  if (library == nullptr) return false;
  const Region a(device, p.a.data, sizeof(T), a_extent), b(device, p.b.data, sizeof(T), b_extent), c(device, p.c.data, sizeof(T), c_extent);
  const auto [gemm, gemm_strided_batched] = functions(*library, T());
  const std::size_t m = size(p.m), n = size(p.n), k = size(p.k);
  cl_command_queue queue = stream.queue();
  const std::lock_guard lock(device.submission);  // its kernels are shared by the threads too
  std::optional<ProcessGuard> guard;              // it compiles at its first call
  if (!device.clblast_called) guard.emplace();
  device.clblast_called = true;
  if (p.batch == 1) {
    check(gemm(p.layout, p.a.trans, p.b.trans, m, n, k, scalar(p.alpha), a.buffer, a.first, size(p.a.ld), b.buffer, b.first, size(p.b.ld),
               scalar(p.beta), c.buffer, c.first, size(p.c.ld), &queue, nullptr),
          "CLBlast's gemm");
  } else {
    check(gemm_strided_batched(p.layout, p.a.trans, p.b.trans, m, n, k, scalar(p.alpha), a.buffer, a.first, size(p.a.ld), size(p.a.stride),
                               b.buffer, b.first, size(p.b.ld), size(p.b.stride), scalar(p.beta), c.buffer, c.first, size(p.c.ld),
                               size(p.c.stride), size(p.batch), &queue, nullptr),
          "CLBlast's gemm_strided_batched");
  }
  return true;
}
template bool clblast_gemm(Stream&, const ClblastGemm<float>&);
template bool clblast_gemm(Stream&, const ClblastGemm<double>&);
template bool clblast_gemm(Stream&, const ClblastGemm<std::complex<float>>&);
template bool clblast_gemm(Stream&, const ClblastGemm<std::complex<double>>&);

}  // namespace tenon::opencl
