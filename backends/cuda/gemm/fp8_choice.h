// SPDX-License-Identifier: Apache-2.0
// fp8_choice.h - which matrix products run in FP8, and why (ADR 94). Host side.
#pragma once

#include <compare>
#include <cstdint>

#include "device/device.h"
#include "device/options.h"
#include "gemm/small_products.h"

namespace tenon::cuda {

/// What the choice depends on: the sizes of a product in f16 or bf16.
struct Fp8Shape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_entries = 1, b_entries = 1;  ///< matrices on each side: 1, or those of the batch
  bool b_packed = false;                      ///< b has been quantised before

  std::int64_t batch() const { return a_entries > b_entries ? a_entries : b_entries; }
  auto operator<=>(const Fp8Shape&) const = default;
};

/// The shape of a product that FP8 can compute; one with k = 0 otherwise. Possible are f16 and bf16, k and n that are multiples of 16,
/// and a factor alpha near 1, so that the product of the scales and alpha is a normal number of f32.
Fp8Shape fp8_shape(const SmallProduct& product);

/// Seconds that FP8 saves, by rates of an H200; negative where it costs more than it saves. The rates of products in 16 bits and of the
/// memory are those of `backends/cuda/results`; that of FP8 is an assumption, since it has not been measured.
double fp8_saved_seconds(const Fp8Shape& shape);

/// Whether the products of a device may run in FP8: `backends.options.cuda.fp8`, for GPUs that can. Attached to a device.
class Fp8Choice {
 public:
  /// Logs one warning if the option asks for what the GPU cannot do.
  Fp8Choice(const Options& options, Device& device);
  bool takes(const Fp8Shape& shape) const;

 private:
  bool enabled_ = false, all_ = false;
};
inline const Fp8Choice& fp8_choice_of(Device& device) {
  return device.attached.get<Fp8Choice>(options_of(device), device);
}

}  // namespace tenon::cuda
