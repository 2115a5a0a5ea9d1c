// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_samples.h"

namespace tenon::bench {

KernelSamples profile_kernels(Program& program, std::span<const Tensor> inputs, int runs) {
  constexpr int warm_up = 3;
  KernelSamples samples;
  program.enable_profile(true);
  for (int run = 0; run < runs + warm_up; ++run) {
    program.run(inputs);
    double own = 0, border = 0;
    for (const Program::KernelTime& kernel : program.profile()) {
      (kernel.nodes.empty() ? border : own) += static_cast<double>(kernel.duration_ns);
    }
    if (run < warm_up) continue;
    samples.own.ns.push_back(own);
    samples.border_ns.push_back(border);
  }
  program.enable_profile(false);
  samples.own.cpu_ns = samples.own.ns;
  return samples;
}

}  // namespace tenon::bench
