// SPDX-License-Identifier: Apache-2.0
// static_shared.h - the `__shared__` variables of kernels, which hold anything when a block of a GPU starts.
#pragma once

namespace tenon::emulation {

/// Fills the static shared memory of the library that has a kernel with 0xFF bytes, NaN in every format, before the first eight blocks of
/// the kernel that the calling thread runs, or launches of a cooperative one; that takes too long for all of them. Does nothing for NULL,
/// for kernels of the program itself, and under AddressSanitizer.
///
/// What it fills are all variables of threads of the library: `__shared__` (emulation.h) has to be the only ones. Libraries with kernels
/// are not unloaded.
///
/// Returns whether it has filled the memory.
bool fill_static_shared(const void* kernel);
/// True if all bytes are as the thread's last fill_static_shared of the kernel has left them.
bool is_static_shared_unwritten(const void* kernel);

}  // namespace tenon::emulation
