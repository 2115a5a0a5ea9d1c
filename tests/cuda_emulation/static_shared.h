// SPDX-License-Identifier: Apache-2.0
// static_shared.h - the `__shared__` variables of kernels, which hold anything when a block of a GPU starts.
#pragma once

namespace tenon::emulation {

/// Fills the static shared memory of the library that has a kernel with 0xFF bytes, NaN in every format, before the first eight blocks of
/// the kernel; that takes too long for all of them. Does nothing for NULL, for kernels of the program itself, whose variables of threads
/// are not only shared memory, and under AddressSanitizer.
void fill_static_shared(const void* kernel);

}  // namespace tenon::emulation
