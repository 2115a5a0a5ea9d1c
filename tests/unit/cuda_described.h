// SPDX-License-Identifier: Apache-2.0
// cuda_described.h - NVIDIA's cuDNN, where it is installed, and a device that only a description defines: plans for it can be made, not
// run.
#pragma once

#include <doctest/doctest.h>

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

inline Descriptor described_h200(const Cudnn& functions) {
  const std::string words =
      R"({"cudaDeviceId": 0, "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "isTccDriver": 0, "l2CacheSize": 52428800,
          "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxCtasPerSM": 32, "maxRegistersPerSM": 65536,
          "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
          "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "memClockRateKHz": 3201000, "smClockRateKHz": 1980000,
          "multiProcessorCount": 132, "pciDeviceId": 0, "regsPerBlock": 65536, "supportCoopLaunch": 1, "totalGlobalMem": 150754820096,
          "warpSize": 32})";
  Descriptor h200(functions, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  h200.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(words.size()), words.data());
  h200.finalize("a described device");
  return h200;
}

}  // namespace tenon::cuda
