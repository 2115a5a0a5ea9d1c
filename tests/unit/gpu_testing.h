// SPDX-License-Identifier: Apache-2.0
// gpu_testing.h - helpers of the GPU tests. They find the cuda backend like a user's program: by TENON_BACKEND_PATH or next to the library.
#pragma once

#include "exec_testing.h"

namespace tenon::test {

inline Config gpu_config(const std::string& device = "cuda:0") {
  Config config;
  config.device = device;
  config.threads = 2;
  config.logging.level = LogLevel::off;
  return config;
}

}  // namespace tenon::test
