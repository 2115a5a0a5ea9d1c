// SPDX-License-Identifier: Apache-2.0
// core/dlpack.h - the two steps of an import by DLPack: a view of the memory, and its ownership.
#pragma once

#include <memory>

#include <tenon/tensor.h>

struct DLManagedTensor;

namespace tenon {

/// A view of the exporter's memory, which does not keep it alive. Errors  those of from_dlpack.
Tensor dlpack_view(const DLManagedTensor* managed);
/// Takes ownership: the deleter is called when the last copy of the result is destroyed.
std::shared_ptr<void> dlpack_owner(DLManagedTensor* managed);

}  // namespace tenon
