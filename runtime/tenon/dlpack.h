// tenon/dlpack.h - tensors from and for other libraries, without a copy: DLPack, the form that NumPy, PyTorch and others exchange.
#pragma once

#include <tenon/tensor.h>

/// Of <dlpack/dlpack.h>, which only those who look inside need. The form of DLPack 0.2 to 1.x without a version.
struct DLManagedTensor;

namespace tenon {

/// A view of the exporter's memory. Takes `managed` over: its deleter is called when the last tensor that shares the memory is gone. On an
/// error it stays the caller's.
///
/// Shapes   any rank up to 8; `strides` may be null (dense), zero or negative; `byte_offset` is honoured.
/// Dtypes   f16 f32 f64, bf16, i8 to i64, u8 to u64, c64, c128, bool (code 6); one lane.
/// Errors   other dtypes and lanes, by name; memory that the host cannot read (devices other than CPU and pinned); addresses that are not
///          aligned to the element.
/// Threads  any; the deleter runs on whichever thread lets go last.
Tensor from_dlpack(DLManagedTensor* managed);

/// The tensor for another library, as memory of the CPU. The receiver calls `deleter` once; until then the memory lives.
///
/// Errors   an undefined tensor; device memory that the host cannot read (to_host() copies it).
/// Threads  any, the deleter included.
DLManagedTensor* to_dlpack(const Tensor& tensor);

}  // namespace tenon
