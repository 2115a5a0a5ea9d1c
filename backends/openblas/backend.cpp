// SPDX-License-Identifier: Apache-2.0
// The default CPU backend: OpenBLAS's serial products divided among the host's threads, vector code with run-time dispatch.
#include <tenon/sdk/backend.h>
#include <tenon/sdk/elementwise.h>

#include <cblas.h>

#include <string>

#include "quantize/quantized_sum.h"
#include "simd/instruction_set.h"

namespace tenon::openblas {
namespace {

const tenon_option options[] = {
    {"threads", TENON_OPTION_INTEGER, 0, "0", nullptr, 0, 1024, "threads for this backend's loops; 0: as many as the host provides"},
    {"memory", TENON_OPTION_CHOICE, 0, "normal", "normal|small", 0, 0,
     "small: packed weights take no more bytes than the weights, and convolutions do not use Winograd's transform"},
    {"isa", TENON_OPTION_CHOICE, 0, "auto", instruction_set_choices, 0, 0,
     "the best instructions that this backend's own kernels use in the process; avx512_dot: with VNNI and BF16; OpenBLAS itself reads "
     "OPENBLAS_CORETYPE"},
};

/// "OpenBLAS 0.3.21 (SkylakeX), vector code for AVX3_SKX".
std::string description() {
  std::string config = openblas_get_config();
  if (const auto end = config.find(' ', config.find(' ') + 1); end != std::string::npos) config.resize(end);
  return config + " (" + openblas_get_corename() + "), vector code for " + name_of(instruction_set());
}

}  // namespace

const sdk::BackendSpec& spec();
const sdk::BackendSpec& spec() {
  static const sdk::BackendSpec openblas{
      .name = "openblas",
      .version = TENON_VERSION,
      .vendor = "Tenon",
      .description = "fast on any CPU: OpenBLAS linked privately, SIMD with run-time dispatch",
      .requirements = nullptr,
      .priority = 50,
      .flags = 0,
      .options = options,
      .create =
          [](sdk::Host host) {
            limit_instruction_set(instruction_set_of(host));
            static const sdk::ElementwiseFusion fusion = sdk::piecewise(quantized_sum_of);
            return sdk::make_cpu_backend(host, description(), &fusion);
          },
  };
  return openblas;
}

}  // namespace tenon::openblas
