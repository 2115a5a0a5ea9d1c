// SPDX-License-Identifier: Apache-2.0
// exec/import.h - host memory as memory of a device, without a copy.
#pragma once

#include <memory>

#include <tenon/context.h>
#include <tenon/tensor.h>

namespace tenon::exec {

/// The elements of a dense host tensor as a tensor of the device in the same memory, which is not kept alive and which may be written to
/// unless it is read-only; undefined if the device cannot use that memory.
Tensor import_tensor(const Tensor& host, const Device& device, bool read_only = false);
/// Keeps `exporter` alive as long as the memory of an imported tensor is.
void keep_exporter(const Tensor& imported, std::shared_ptr<void> exporter);

}  // namespace tenon::exec
