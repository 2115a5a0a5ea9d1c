// SPDX-License-Identifier: Apache-2.0
// cuda_described.h - NVIDIA's cuDNN, where it is installed, and a device that only a description defines: plans for it can be made, not
// run.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "backends/cuda/libraries/operation_graph.h"

namespace tenon::cuda {

/// The installed cuDNN; none, with a message that says why, if there is none to which devices can be described.
inline std::optional<Cudnn> installed_cudnn() {
  const Search here = search_here(nullptr);
  try {
    Library({"cuDNN", "libcudnn", CUDNN_MAJOR}, here);
  } catch (const sdk::Error& e) {
    MESSAGE("skipped, because there is none: " << e.what());
    return std::nullopt;
  }
  std::optional<Cudnn> functions(std::in_place, here);
  if (functions->cudnnGetVersion() < 90800) {
    MESSAGE("skipped, because devices cannot be described to cuDNN " << functions->cudnnGetVersion());
    return std::nullopt;
  }
  return functions;
}

/// "NVIDIA H200", "NVIDIA H100 80GB HBM3": what they differ in. The rest is the same chip.
struct DescribedGpu {
  const char* name;
  std::int64_t memory_bytes;
  int memory_clock_khz;
};
constexpr DescribedGpu h200{"NVIDIA H200", 150754820096, 3201000}, h100{"NVIDIA H100 80GB HBM3", 85017493504, 2619000};

inline Descriptor described(const Cudnn& functions, const DescribedGpu& gpu) {
  const std::string words = std::string(R"({"cudaDeviceId": 0, "deviceName": ")") + gpu.name + R"(", "totalGlobalMem": )" +
                            std::to_string(gpu.memory_bytes) + R"(, "memClockRateKHz": )" + std::to_string(gpu.memory_clock_khz) +
                            R"(, "deviceVer": 900, "driverVer": 13000, "isTccDriver": 0, "l2CacheSize": 52428800,
          "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxCtasPerSM": 32, "maxRegistersPerSM": 65536,
          "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
          "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "smClockRateKHz": 1980000, "multiProcessorCount": 132, "pciDeviceId": 0,
          "regsPerBlock": 65536, "supportCoopLaunch": 1, "warpSize": 32})";
  Descriptor made(functions, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(words.size()), words.data());
  made.finalize("a described device");
  return made;
}

}  // namespace tenon::cuda
