// SPDX-License-Identifier: Apache-2.0
// nvrtc.h - NVRTC, NVIDIA's compiler of CUDA source at run time, opened at first use.
#pragma once

#include <nvrtc.h>

#include <string>
#include <utility>
#include <vector>

#include <tenon/sdk/host.h>

#include "libraries/library.h"

/// The functions in use.
#define TENON_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)                \
  X(nvrtcGetErrorString)         \
  X(nvrtcCreateProgram)          \
  X(nvrtcDestroyProgram)         \
  X(nvrtcCompileProgram)         \
  X(nvrtcGetCUBINSize)           \
  X(nvrtcGetCUBIN)               \
  X(nvrtcGetProgramLogSize)      \
  X(nvrtcGetProgramLog)

namespace tenon::cuda {

class Nvrtc {
 public:
  /// Errors  INCOMPATIBLE: it is missing or not of the headers' major version.
  explicit Nvrtc(const Search& search);

  /// "13.0"
  const std::string& version() const { return version_; }

  /// A file that the source includes: its name and its text.
  using Header = std::pair<const char*, const char*>;
  /// Machine code of a source for one architecture, such as "sm_90". Products and sums are not contracted to one operation.
  ///
  /// Errors   INTERNAL, with the compiler's messages, for a source that does not compile or an architecture that it does not know.
  /// Threads  any
  std::string compile(const std::string& source, const std::vector<Header>& headers, const std::string& architecture) const;

 private:
  Library library_;
#define TENON_FUNCTION(name) decltype(&::name) name##_;
  TENON_NVRTC_FUNCTIONS(TENON_FUNCTION)
#undef TENON_FUNCTION
  std::string version_;
};

/// NVRTC, opened by the first call and never closed. Errors and threads as those of cudnn().
const Nvrtc& nvrtc(const sdk::Host& host);

}  // namespace tenon::cuda
