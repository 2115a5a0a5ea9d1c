// SPDX-License-Identifier: Apache-2.0
// cli/peaks.h - the peaks of devices that need not be in this machine.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <tenon/dtype.h>

namespace tenon::cli {

/// What a device can do at most: dense arithmetic by dtype, and copies in its memory.
struct Peaks {
  std::string_view name;    ///< of the option --peaks: "h100"
  std::string_view source;  ///< the document that the figures are from
  std::map<DType, double> gflops;
  double gb_per_s;
  double launch_us;  ///< between two dependent kernels of a recorded graph; an estimate
};

/// Errors  a name that is not known; the message lists those that are.
const Peaks& peaks_of(const std::string& name);
/// "a100, h100 or h200"
std::string names_of_peaks();

}  // namespace tenon::cli
