// SPDX-License-Identifier: Apache-2.0
// core/dlpack.h - the two steps of an import by DLPack: a view of the memory, and its ownership.
#pragma once

#include <memory>

#include <tenon/tensor.h>

#include "core/dlpack_versioned.h"

namespace tenon {

/// The tensor of an exporter, validated as far as that is possible without reading it. Errors  those of from_dlpack.
const DLTensor& dlpack_tensor(const DLManagedTensor* managed);
const DLTensor& dlpack_tensor(const DLManagedTensorVersioned* managed);
inline bool is_read_only(const DLManagedTensor*) {
  return false;
}
inline bool is_read_only(const DLManagedTensorVersioned* managed) {
  return (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
}

/// A view of the exporter's memory, which does not keep it alive; of `memory`, whose place that is, or of the host if it is null.
/// Errors  those of from_dlpack.
Tensor dlpack_view(const DLTensor& from, std::shared_ptr<DeviceMemory> memory = nullptr);

/// Takes ownership: the deleter is called when the last copy of the result is destroyed.
template <class Managed>
std::shared_ptr<void> dlpack_owner(Managed* managed) {
  return {managed, [](Managed* owned) {
            if (owned->deleter != nullptr) owned->deleter(owned);
          }};
}

}  // namespace tenon
