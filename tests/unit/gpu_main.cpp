// SPDX-License-Identifier: Apache-2.0
// Main of the GPU tests: without a GPU they exit with status 77 and a reason.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "gpu_testing.h"

int main(int argc, char** argv) {
  try {
    const tenon::Context context(tenon::test::gpu_config("reference:0"));
    bool found = false;
    for (const tenon::DeviceInfo& device : context.devices()) {
      if (device.backend != "cuda") continue;
      std::printf("%s: %s, %s\n", device.name.c_str(), device.product.c_str(), device.description.c_str());
      found = true;
    }
    if (!found) {
      std::string reason = "there is no cuda backend where TENON_BACKEND_PATH and the installation say";
      for (const tenon::LoadRecord& record : context.load_report().records) {
        if (record.name == "cuda") reason = record.text;
      }
      std::printf("skipped, because %s\n", reason.c_str());
      return 77;
    }
  } catch (const std::exception& e) {
    std::printf("no context: %s\n", e.what());
    return 1;
  }
  return doctest::Context(argc, argv).run();
}
