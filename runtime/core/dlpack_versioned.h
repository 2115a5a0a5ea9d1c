// SPDX-License-Identifier: Apache-2.0
// core/dlpack_versioned.h - the versioned struct of DLPack 1.x, which <dlpack/dlpack.h> of earlier versions lacks.
#pragma once

#include <dlpack/dlpack.h>

#ifndef DLPACK_MAJOR_VERSION
#include <cstdint>

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#endif
