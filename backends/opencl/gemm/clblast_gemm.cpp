// SPDX-License-Identifier: Apache-2.0
#include "gemm/clblast_gemm.h"

#include <bit>
#include <complex>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/process_guard.h"

namespace tenon::opencl {
namespace {

// CLBlast's name of T; for T its functions to multiply, the one for the memory that gemm takes, its name of the precision, and the place
// in Device::clblast_min_indirect.
#define TENON_CLBLAST_GEMM(T, native, letter, precision, index)                                                                    \
  native scalar(T x) {                                                                                                             \
    return std::bit_cast<native>(x);                                                                                               \
  }                                                                                                                                \
  auto functions(const Clblast& all, T) {                                                                                          \
    return std::tuple(all.CLBlast##letter##gemm, all.CLBlast##letter##gemmStridedBatched, all.CLBlast##letter##GemmTempBufferSize, \
                      precision, std::size_t{index});                                                                              \
  }
TENON_CLBLAST_GEMM(float, float, S, CLBlastPrecisionSingle, 0)
TENON_CLBLAST_GEMM(double, double, D, CLBlastPrecisionDouble, 1)
TENON_CLBLAST_GEMM(std::complex<float>, cl_float2, C, CLBlastPrecisionComplexSingle, 2)
TENON_CLBLAST_GEMM(std::complex<double>, cl_double2, Z, CLBlastPrecisionComplexDouble, 3)

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// On CPUs CLBlast takes the parameters of GPUs. There a work-item is best a loop of its own, whose tile of 2 x 8 vectors stays in
/// registers, without local memory, which is only a copy more. results/README.md has the times of models with its parameters and with
/// these.
void tune_for_cpu(const Clblast& library, const Device& device, CLBlastPrecision precision) {
  const auto set = [&](const char* kernel, std::initializer_list<std::pair<const char*, std::size_t>> parameters) {
    std::vector<const char*> names;
    std::vector<std::size_t> values;
    for (const auto& [name, value] : parameters) {
      names.push_back(name);
      values.push_back(value);
    }
    const CLBlastStatusCode status =
        library.CLBlastOverrideParameters(device.id(), kernel, precision, names.size(), names.data(), values.data());
    if (status != CLBlastSuccess) {
      device.host.log(TENON_LOG_WARNING,
                      ("opencl: CLBlast refuses the parameters of its kernel " + std::string(kernel) + " for CPUs (status " +
                       std::to_string(static_cast<int>(status)) + "), so products are several times slower; install CLBlast 1.5.3")
                          .c_str());
    }
  };
  set("GemmRoutine", {{"XGEMM_MIN_INDIRECT_SIZE", 32}});
  if (precision != CLBlastPrecisionSingle && precision != CLBlastPrecisionDouble) return;
  const cl_device_info fact =
      precision == CLBlastPrecisionSingle ? CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT : CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE;
  cl_uint width = 0;
  if (api().clGetDeviceInfo(device.id(), fact, sizeof width, &width, nullptr) != CL_SUCCESS || width == 0) return;
  set("Xgemm", {{"GEMMK", 0},
                {"KREG", 1},
                {"KWG", 16},
                {"KWI", 1},
                {"MDIMA", 1},
                {"MDIMC", 1},
                {"MWG", 2 * width},
                {"NDIMB", 1},
                {"NDIMC", 1},
                {"NWG", 8},
                {"SA", 0},
                {"SB", 0},
                {"STRM", 0},
                {"STRN", 0},
                {"VWM", width},
                {"VWN", 1}});
}

/// Multiplications from which on CLBlast lays out operands anew before it multiplies; below, one kernel does it all. The size of a square
/// product decides: the least for which CLBlast wants memory to copy an operand that does not begin at 0. 0 if it does not say.
template <class Memory>
std::int64_t min_indirect(Memory memory, cl_command_queue queue) {
  std::size_t direct = 0, indirect = 4096;
  while (indirect - direct > 1) {
    const std::size_t n = (direct + indirect) / 2;
    std::size_t bytes = 0;
    const CLBlastStatusCode status =
        memory(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, n, n, n, 1, n + 1, 1, n + 1, 1, n + 1, &queue, &bytes);
    if (status != CLBlastSuccess) return 0;
    (bytes > 0 ? indirect : direct) = n;
  }
  return static_cast<std::int64_t>(indirect * indirect * indirect);
}

}  // namespace

template <class T>
bool clblast_gemm(Stream& stream, const ClblastGemm<T>& p) {
  if (!worth_clblast(p.m, p.n, p.k, p.batch)) return false;
  const bool by_rows = p.layout == CLBlastLayoutRowMajor;
  const auto lines = [&](const auto& x, std::int64_t rows, std::int64_t columns) {
    return by_rows == (x.trans == CLBlastTransposeNo) ? rows : columns;
  };
  for (const auto& [x, x_lines] :
       {std::pair(&p.a, lines(p.a, p.m, p.k)), std::pair(&p.b, lines(p.b, p.k, p.n)), std::pair(&p.c, lines(p.c, p.m, p.n))}) {
    // Its offsets are in elements and its strides unsigned; its kernels compute indices in 32 bits, also those of
    // copies that it makes a little larger.
    if (x->data.offset % sizeof(T) != 0 || x->stride < 0) return false;
    const std::int64_t first = static_cast<std::int64_t>(x->data.offset / sizeof(T)) + (p.batch - 1) * x->stride;
    if (first + x_lines * x->ld > std::numeric_limits<std::int32_t>::max() / 2) return false;
  }
  Device& device = stream.device();
  const Clblast* const library = clblast(device.host);
  if (library == nullptr) return false;
  const auto at = [](const auto& x) { return x.data.offset / sizeof(T); };
  const auto [gemm, gemm_strided_batched, memory, precision, index] = functions(*library, T());
  const std::size_t m = size(p.m), n = size(p.n), k = size(p.k);
  cl_command_queue queue = stream.queue();
  const std::lock_guard lock(device.submission);  // its kernels are shared by the threads too
  std::optional<ProcessGuard> guard;              // it compiles at its first call
  std::int64_t& limit = device.clblast_min_indirect[index];
  if (limit < 0) {
    guard.emplace();
    if (device.description().kind == TENON_DEVICE_CPU) tune_for_cpu(*library, device, precision);
    limit = min_indirect(memory, queue);
  }
  // From there on CLBlast's batched products (1.5.3) take an operand that needs no new layout to begin at 0 and its entries to follow each
  // other, whatever the offset and the stride.
  if (p.batch > 1 && p.m * p.n * p.k < limit) {
    check(gemm_strided_batched(p.layout, p.a.trans, p.b.trans, m, n, k, scalar(p.alpha), p.a.data.buffer, at(p.a), size(p.a.ld),
                               size(p.a.stride), p.b.data.buffer, at(p.b), size(p.b.ld), size(p.b.stride), scalar(p.beta), p.c.data.buffer,
                               at(p.c), size(p.c.ld), size(p.c.stride), size(p.batch), &queue, nullptr),
          "CLBlast's gemm_strided_batched");
    return true;
  }
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    const auto begin = [&](const auto& x) { return at(x) + size(entry * x.stride); };
    check(gemm(p.layout, p.a.trans, p.b.trans, m, n, k, scalar(p.alpha), p.a.data.buffer, begin(p.a), size(p.a.ld), p.b.data.buffer,
               begin(p.b), size(p.b.ld), scalar(p.beta), p.c.data.buffer, begin(p.c), size(p.c.ld), &queue, nullptr),
          "CLBlast's gemm");
  }
  return true;
}
template bool clblast_gemm(Stream&, const ClblastGemm<float>&);
template bool clblast_gemm(Stream&, const ClblastGemm<double>&);
template bool clblast_gemm(Stream&, const ClblastGemm<std::complex<float>>&);
template bool clblast_gemm(Stream&, const ClblastGemm<std::complex<double>>&);

}  // namespace tenon::opencl
