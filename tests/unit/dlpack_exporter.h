// SPDX-License-Identifier: Apache-2.0
// dlpack_exporter.h - a tensor of another library, for imports by DLPack.
#pragma once

#include <dlpack/dlpack.h>

#include <array>
#include <cstdint>

namespace tenon::test {

/// Another library's tensor of 2 x 3 floats that counts the calls of its deleter.
struct Exporter {
  alignas(64) std::array<float, 6> elements{0, 1, 2, 3, 4, 5};
  std::array<std::int64_t, 2> shape{2, 3};
  std::array<std::int64_t, 2> strides{3, 1};
  int deleted = 0;
  DLManagedTensor managed{};

  Exporter() {
    managed.dl_tensor = {elements.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Exporter*>(self->manager_ctx)->deleted; };
  }
};

}  // namespace tenon::test
