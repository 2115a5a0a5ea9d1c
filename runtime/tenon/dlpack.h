// SPDX-License-Identifier: Apache-2.0
// tenon/dlpack.h - zero-copy exchange of tensors with NumPy, PyTorch and other libraries through
// DLPack.
#pragma once

#include <cstdint>

#include <tenon/api.h>
#include <tenon/tensor.h>

/// Defined in <dlpack/dlpack.h>, which only code that accesses its fields needs. The unversioned
/// struct of DLPack 0.2 to 1.x.
struct DLManagedTensor;
/// The same with a version and flags: the struct of DLPack 1.x.
struct DLManagedTensorVersioned;

namespace tenon {

/// A tensor of another library.
struct ImportedTensor {
  Tensor tensor;
  bool read_only = false;  ///< the exporter does not allow writing to the elements
};

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

/// The same as memory of the device. Memory of that very device, which its backend identifies by
/// tenon/dlpack_extension.h, is used in place, with any strides: work on it that the exporter has
/// submitted must have finished. Host memory stays where it is if the device can use it there (the
/// backend's memory_import), the tensor is dense and its first byte is as aligned as the device's
/// operands must be. Otherwise the elements are copied to the device, and the deleter is called
/// before this function returns.
///
/// Shapes   as above; a result that was host memory is dense.
/// Errors   as above, memory of another device, and those of the device; on an error the caller
///          keeps ownership.
/// Threads  as above. While the tensor lives, the exporter changes the bytes only when no submitted
///          work uses them.
TENON_API Tensor from_dlpack(DLManagedTensor* managed, const Device& device);

/// The same for the struct of DLPack 1.x. Errors also: a major version other than 1.
TENON_API ImportedTensor from_dlpack(DLManagedTensorVersioned* managed);
/// The same as memory of the device; a copy may be written to.
TENON_API ImportedTensor from_dlpack(DLManagedTensorVersioned* managed, const Device& device);

/// The tensor for another library: CPU memory, or memory of a device that its backend identifies by
/// tenon/dlpack_extension.h, on which no work is pending. The receiver calls `deleter` once; the
/// memory lives until then.
///
/// Errors   an undefined tensor; memory of another device that the host cannot read (to_host()
///          copies it).
/// Threads  any, the deleter included.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);
/// The same as the struct of DLPack 1.x. A receiver of read-only memory must not write to it.
TENON_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor,
                                                        bool read_only = false);

/// Where DLPack says that memory of the device is: its DLDeviceType and index.
struct DlpackDevice {
  std::int32_t type = 0;  ///< 1: the CPU; 2: CUDA
  std::int32_t id = 0;
  bool operator==(const DlpackDevice&) const = default;
};
/// That of the tensor's memory. Errors  those of to_dlpack.
TENON_API DlpackDevice dlpack_device_of(const Tensor& tensor);

}  // namespace tenon
