// knobs.h - what the user set in backends.options.cuda, read once, when a device is opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tenon/sdk/host.h>

#include "device.h"

namespace tenon::cuda {

/// Attached to a device.
struct Knobs {
  /// Errors  INVALID_ARGUMENT for an `algorithm` that is none.
  explicit Knobs(const sdk::Host& host);

  bool naive = false;                                  ///< `kernels`: convolutions and products with a thread for each result, no library
  bool measures = false;                               ///< `algorithm`: by time, not by cuDNN's heuristic
  std::optional<std::int64_t> engine;                  ///< `algorithm`: the one that was named
  std::size_t workspace_limit = std::size_t{1} << 30;  ///< `workspace_limit_mib`, in bytes
};
inline const Knobs& knobs_of(Device& device) {
  return device.attached.get<Knobs>(device.host);
}

/// The number in "engine 37"; none for other texts.
std::optional<std::int64_t> engine_number(const std::string& text);

}  // namespace tenon::cuda
