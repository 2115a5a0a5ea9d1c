// SPDX-License-Identifier: Apache-2.0
// tenon/dlpack.h - zero-copy exchange of tensors with NumPy, PyTorch and other libraries through
// DLPack.
#pragma once

#include <tenon/api.h>
#include <tenon/tensor.h>

/// Defined in <dlpack/dlpack.h>, which only code that accesses its fields needs. The unversioned
/// struct of DLPack 0.2 to 1.x.
struct DLManagedTensor;

namespace tenon {

/// A view of the exporter's memory. Takes ownership of `managed`: its deleter is called when the
/// last tensor that shares the memory is destroyed. On an error the caller keeps ownership.
///
/// Shapes   any rank up to 8; `strides` may be null (dense), zero or negative; `byte_offset` is
///          honoured.
/// Dtypes   f16 f32 f64, bf16, i8 to i64, u8 to u64, c64, c128, bool (code 6); lanes = 1.
/// Errors   other dtypes and lanes, by name; memory that the host cannot read (devices other than
///          CPU and pinned); addresses that are not aligned to the element.
/// Threads  any; the deleter runs on the thread that destroys the last tensor.
TENON_API Tensor from_dlpack(DLManagedTensor* managed);

/// The same as memory of the device. It stays where it is if the device can use it there (the
/// backend's memory_import), the tensor is dense and its first byte is as aligned as the device's
/// operands must be. Otherwise the elements are copied to the device, and the deleter is called
/// before this function returns.
///
/// Shapes   as above; the result is dense.
/// Errors   as above, and those of the device; on an error the caller keeps ownership.
/// Threads  as above. While the tensor lives, the exporter changes the bytes only when no submitted
///          work uses them.
TENON_API Tensor from_dlpack(DLManagedTensor* managed, const Device& device);

/// The tensor as CPU memory for another library. The receiver calls `deleter` once; the memory
/// lives until then.
///
/// Errors   an undefined tensor; device memory that the host cannot read (to_host() copies it).
/// Threads  any, the deleter included.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);

}  // namespace tenon
