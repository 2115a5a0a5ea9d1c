// SPDX-License-Identifier: Apache-2.0
// options.h - the user's backends.options.cuda, read once when a device is opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tenon/sdk/host.h>

#include "device/device.h"

namespace tenon::cuda {

/// Attached to a device.
struct Options {
  /// Errors  INVALID_ARGUMENT for an invalid `algorithm`.
  explicit Options(const sdk::Host& host);

  bool naive = false;                  ///< `kernels`: convolutions and products with one thread per result, without libraries
  bool measures = false;               ///< `algorithm`: by measured time, not by cuDNN's heuristic
  std::optional<std::int64_t> engine;  ///< `algorithm`: the named engine
  std::size_t workspace_limit = std::size_t{1} << 30;                                                ///< `workspace_limit_mib`, in bytes
  enum class Elementwise { automatic, compiled, interpreted } elementwise = Elementwise::automatic;  ///< `elementwise`: groups of ops
  enum class Fp8 { off, automatic, all } fp8 = Fp8::off;  ///< `fp8`: products of f16 and bf16 in FP8
  bool small_products = true;                             ///< `products`: small matrix products of ops by kernels of our own
  /// `recurrent`: all time steps of a layer by one kernel of single blocks, or of groups of blocks, where it fits; or each by launches
  enum class Recurrence { automatic, cooperative, library } recurrence = Recurrence::automatic;
  bool programmatic_launch =
      false;                 ///< `programmatic_launch`: kernels of small nets are started before those that they depend on have ended
  std::string kernel_cache;  ///< `kernel_cache`: the folder of code that NVRTC has compiled; empty: none
  bool nvtx = false;         ///< `nvtx`: each kernel is submitted within a range of NVTX
};
inline const Options& options_of(Device& device) {
  return device.attached.get<Options>(device.host);
}

/// The index in "engine 37"; none for other texts.
std::optional<std::int64_t> engine_index(const std::string& text);

}  // namespace tenon::cuda
