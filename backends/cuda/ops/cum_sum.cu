// SPDX-License-Identifier: Apache-2.0
// Running sums along an axis. If there are few long lines, they are split into parts: the totals of the parts are scanned first, and each
// part starts from the sum of the earlier ones. The order of a sum depends only on shapes.
#include <type_traits>

#include "kernel/image.cuh"

namespace tenon::cuda {
namespace {

constexpr int threads = 256;
constexpr int rounds = 4;  ///< elements that a thread loads at once

/// x (outer, n, inner) is summed along n, in parts of `part` elements. Elements and parts are indexed in the order of summation.
struct Scan {
  std::int64_t outer, n, inner;
  std::int64_t part, parts;
  bool exclusive, reverse;

  std::int64_t lines() const { return outer * inner; }
  /// The offset of element k of the line at `start`.
  __device__ std::int64_t at(std::int64_t start, std::int64_t k) const { return start + (reverse ? n - 1 - k : k) * inner; }
};

/// Contiguous lines (inner is 1): `lanes` threads per part, up to a warp or the whole block. The elements of a warp are contiguous; every
/// lane takes part in every shuffle.
///
/// before  initial sum of each part, (outer, parts); NULL: 0
/// totals  (outer, parts), written instead of y; or NULL
template <class T>
__global__ void __launch_bounds__(threads)
    scan_rows(Scan scan, int lanes, Divisor by_parts, const T* x, const Wide<T>* before, T* y, Wide<T>* totals) {
  using Sum = Wide<T>;
  __shared__ Sum of_warps[2][threads / 32];
  const int width = lanes < 32 ? lanes : 32, warps = lanes / width;  // warps that share a part
  const int lane = static_cast<int>(threadIdx.x) % width, warp = static_cast<int>(threadIdx.x) % lanes / width;
  const std::int64_t step = std::int64_t{gridDim.x} * (threads / lanes), jobs = scan.outer * scan.parts;
  int parity = 0;
  // every thread of the block runs the same number of iterations
  for (std::int64_t first = std::int64_t{blockIdx.x} * (threads / lanes); first < jobs; first += step) {
    const std::int64_t job = first + static_cast<int>(threadIdx.x) / lanes;
    const bool exists = job < jobs;
    const std::int64_t line = exists ? by_parts.quotient(job) : 0, begin = exists ? (job - line * scan.parts) * scan.part : 0;
    const std::int64_t end = !exists ? begin : begin + scan.part < scan.n ? begin + scan.part : scan.n;
    Sum carry = before != nullptr && exists ? before[job] : Sum(0);
    for (std::int64_t tile = 0; tile < scan.part; tile += std::int64_t{lanes} * rounds, parity ^= 1) {
      const std::int64_t own = begin + tile + std::int64_t{warp} * width * rounds + lane;
      Sum sums[rounds], until[rounds];
      bool inside[rounds];
#pragma unroll
      for (int r = 0; r < rounds; ++r) {
        inside[r] = own + r * width < end;
        sums[r] = inside[r] ? widen(x[scan.at(line * scan.n, own + r * width)]) : Sum(0);
      }
      Sum of_warp = 0;
#pragma unroll
      for (int r = 0; r < rounds; ++r) {
        until[r] = sums[r];
        for (int delta = 1; delta < width; delta *= 2) {
          const Sum left = __shfl_up_sync(0xffffffffu, until[r], static_cast<unsigned>(delta), width);
          if (lane >= delta) until[r] += left;
        }
        // the exclusive sum: that of the lane to the left, 0 for the first lane
        const Sum left = __shfl_up_sync(0xffffffffu, until[r], 1u, width), all = __shfl_sync(0xffffffffu, until[r], width - 1, width);
        sums[r] = of_warp + (lane == 0 ? Sum(0) : left);
        until[r] += of_warp;
        of_warp += all;
      }
      Sum start = carry;
      if (warps > 1) {
        if (lane == 0) of_warps[parity][warp] = of_warp;
        __syncthreads();  // slower warps may still read the other half of the buffer
        for (int w = 0; w < warps; ++w) {
          if (w == warp) start = carry;
          carry += of_warps[parity][w];
        }
      } else {
        carry += of_warp;
      }
      if (totals != nullptr) continue;
#pragma unroll
      for (int r = 0; r < rounds; ++r) {
        if (inside[r]) y[scan.at(line * scan.n, own + r * width)] = narrow<T>(start + (scan.exclusive ? sums[r] : until[r]));
      }
    }
    if (totals != nullptr && exists && lane == 0 && warp == 0) totals[job] = carry;
  }
}

/// Interleaved lines: one thread per part of a line. before and totals are (outer, parts, inner).
template <class T>
__global__ void __launch_bounds__(threads)
    scan_columns(Scan scan, Divisor by_inner, Divisor by_parts, const T* x, const Wide<T>* before, T* y, Wide<T>* totals) {
  for (std::int64_t job = thread_index(); job < scan.outer * scan.parts * scan.inner; job += thread_count()) {
    const std::int64_t row = by_inner.quotient(job), outer = by_parts.quotient(row);
    const std::int64_t start = outer * scan.n * scan.inner + (job - row * scan.inner), begin = (row - outer * scan.parts) * scan.part;
    const std::int64_t end = begin + scan.part < scan.n ? begin + scan.part : scan.n;
    Wide<T> sum = before != nullptr ? before[job] : 0;
    for (std::int64_t k = begin; k < end; k += rounds) {
      T terms[rounds];
#pragma unroll
      for (int r = 0; r < rounds; ++r) terms[r] = x[scan.at(start, k + r < end ? k + r : k)];
#pragma unroll
      for (int r = 0; r < rounds; ++r) {
        if (k + r >= end) break;
        const Wide<T> until = sum;
        sum += widen(terms[r]);
        if (totals == nullptr) y[scan.at(start, k + r)] = narrow<T>(scan.exclusive ? until : sum);
      }
    }
    if (totals != nullptr) totals[job] = sum;
  }
}

/// Parts of at least 1024 elements (columns: 64), and enough of them to keep the memory of a large GPU busy, if there is that much work.
Scan plan(const sdk::Operand& x, const tenon_attributes_cum_sum& attributes) {
  const sdk::AxisView view = sdk::around_axis(x, attributes.axis);
  Scan scan{view.outer, view.n, view.inner, view.n, 1, attributes.exclusive != 0, attributes.reverse != 0};
  if (x.count == 0) return scan;
  const bool rows = view.inner == 1;
  const std::int64_t min_part = rows ? threads * rounds : 64, target_parts = rows ? 1056 : 1056 * threads;
  const std::int64_t parts = std::clamp<std::int64_t>(view.n / min_part, 1, std::max<std::int64_t>(1, target_parts / scan.lines()));
  scan.part = (view.n + parts - 1) / parts;
  scan.parts = (view.n + scan.part - 1) / scan.part;
  return scan;
}

template <class T>
void run(Stream& stream, const Scan& scan, const T* x, const Wide<T>* before, T* y, Wide<T>* totals) {
  if (scan.inner > 1) {
    launch(stream, grid_stride(stream.device(), scan.outer * scan.parts * scan.inner, threads), scan_columns<T>, scan, Divisor(scan.inner),
           Divisor(scan.parts), x, before, y, totals);
    return;
  }
  int lanes = 1;
  while (lanes < 32 && lanes * rounds < scan.part) lanes *= 2;
  // A warp reads about a kilobyte, unless that gives too few warps.
  const bool few = scan.outer * scan.parts < 1056 * (threads / 32);
  if (scan.part > 32 * rounds && (few || scan.part >= threads * rounds)) lanes = threads;
  launch(stream, grid_stride(stream.device(), scan.outer * scan.parts * lanes, threads), scan_rows<T>, scan, lanes, Divisor(scan.parts), x,
         before, y, totals);
}

/// y[i] = x[0] + ... + x[i] along the axis; exclusive without x[i], reverse from the end.
///
/// Shapes  x, y dense.
/// Dtypes  f16 and bf16 are summed in f32 and rounded once; integers wrap.
template <class T>
void cum_sum(const sdk::Call& call) {
  using Sum = Wide<T>;
  if (call.outputs[0].count == 0) return;
  const Scan scan = plan(call.inputs[0], call.attr<tenon_attributes_cum_sum>());
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  Stream& stream = stream_of(call);
  if (scan.parts == 1) return run<T>(stream, scan, x, nullptr, y, nullptr);
  auto* const totals = static_cast<Sum*>(call.scratch);
  Sum* const before = totals + scan.lines() * scan.parts;
  run<T>(stream, scan, x, nullptr, nullptr, totals);
  run<Sum>(stream, {scan.outer, scan.parts, scan.inner, scan.parts, 1, true, false}, totals, nullptr, before, nullptr);
  run<T>(stream, scan, x, before, y, nullptr);
}
std::size_t scratch(const sdk::Call& call) {
  const Scan scan = plan(call.inputs[0], call.attr<tenon_attributes_cum_sum>());
  return scan.parts == 1 ? 0 : static_cast<std::size_t>(2 * scan.lines() * scan.parts) * sizeof(double);
}

}  // namespace
TENON_KERNEL_WITH(cum_sum, (sdk::Traits{.scratch = scratch}), sdk::Half, sdk::BFloat16, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
