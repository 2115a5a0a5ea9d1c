// gpu_testing.h - what tests of the cuda backend share. They find it as a user's program would: TENON_BACKEND_PATH, or beside the library.
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
