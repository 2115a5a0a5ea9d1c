// SPDX-License-Identifier: Apache-2.0
#include "gemm/fp8_choice.h"

#include <cmath>
#include <limits>
#include <string>

namespace tenon::cuda {
namespace {

constexpr std::int64_t multiple = 16;       // of k and n: cuBLASLt reads lines of FP8 that are multiples of 16 bytes
constexpr double largest_factor = 256;      // of alpha and 1 / alpha
constexpr int first_capability = 89;        // compute capability 8.9
constexpr double rate_of_16_bits = 670e12;  // operations of products in a second
constexpr double rate_of_fp8 = 1200e12;
constexpr double bytes_per_second = 4.1e12;
constexpr double launch_seconds = 2e-6;                                // of a small kernel that is replayed (ADR 82)
constexpr double launches = 3;                                         // two that quantise, one that looks for infinities
constexpr double bytes_of_quantising = 2 * sizeof(std::uint16_t) + 1;  // an element is read for the scale, read again, and written

}  // namespace

Fp8Shape fp8_shape(const SmallProduct& p) {
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, k = p.a_view.columns;
  const double factor = std::abs(p.alpha);
  if (p.dtype != TENON_DTYPE_F16 && p.dtype != TENON_DTYPE_BF16) return {};
  if (m < 1 || n < 1 || k < 1 || k % multiple != 0 || n % multiple != 0) return {};
  if (!(factor <= largest_factor && factor >= 1 / largest_factor)) return {};
  if (p.batch < 1 || p.batch > std::numeric_limits<std::int32_t>::max()) return {};
  if (p.batch > 1 && p.a_step == 0 && p.b_step == 0) return {};  // one product, repeated
  return {.m = m, .n = n, .k = k, .a_entries = p.a_step == 0 ? 1 : p.batch, .b_entries = p.b_step == 0 ? 1 : p.batch};
}

double fp8_saved_seconds(const Fp8Shape& shape) {
  const auto product = [](std::int64_t entries, std::int64_t rows, std::int64_t columns) {
    return static_cast<double>(entries) * static_cast<double>(rows) * static_cast<double>(columns);
  };
  const double operations = 2 * product(shape.batch(), shape.m, shape.n) * static_cast<double>(shape.k);
  const double quantised = product(shape.a_entries, shape.m, shape.k) + (shape.b_packed ? 0 : product(shape.b_entries, shape.n, shape.k));
  const double saved = operations * (1 / rate_of_16_bits - 1 / rate_of_fp8);
  return saved - quantised * bytes_of_quantising / bytes_per_second - launches * launch_seconds;
}

Fp8Choice::Fp8Choice(const Options& options, Device& device) {
  if (options.fp8 == Options::Fp8::off || options.naive) return;
  const int capability = device.compute_capability();
  if (capability < first_capability) {
    const std::string line = "backends.options.cuda.fp8: cuda:" + std::to_string(device.index()) + " has compute capability " +
                             std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
                             "; products run in FP8 from 8.9 on, here in the dtype of their operands";
    device.host.log(TENON_LOG_WARNING, line.c_str());
    return;
  }
  enabled_ = true;
  all_ = options.fp8 == Options::Fp8::all;
}

bool Fp8Choice::takes(const Fp8Shape& shape) const {
  return enabled_ && shape.k > 0 && (all_ || fp8_saved_seconds(shape) > 0);
}

}  // namespace tenon::cuda
