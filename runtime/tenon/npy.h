// SPDX-License-Identifier: Apache-2.0
// tenon/npy.h - NumPy files: .npy holds one array, .npz is a zip archive of them.
#pragma once

#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/safetensors.h>
#include <tenon/tensor.h>

namespace tenon {

/// Reads a .npy file of version 1.0 to 3.0 into a dense host tensor. Fortran order is transposed,
/// big-endian elements are swapped. Every number in the header is validated before use, so a
/// damaged or hostile file costs no more memory than its own size.
///
/// Dtypes  bool, i8 to i64, u8 to u64, f16, f32, f64, c64, c128.
/// Errors  name the file, what was expected and what was found: not a .npy file, an unsupported
///         version, an unsupported dtype (objects, strings, records), more than eight dimensions,
///         too few or too many bytes for the shape.
TENON_API Tensor load_npy(const std::string& path);

/// Writes version 1.0, row-major, atomically: `path` holds either its old content or all of the new
/// one.
/// Errors  bf16, which the format lacks; a file that cannot be written.
TENON_API void save_npy(const std::string& path, const Tensor& tensor);

/// Reads the arrays of an .npz file in the order of the archive, members stored or deflated, names
/// without ".npy".
/// Errors  those of load_npy with the member named ("a.npz: member 'x.npy': ..."); an archive that
///         is damaged, split or encrypted; a member whose CRC does not match.
TENON_API std::vector<NamedTensor> load_npz(const std::string& path);
/// Reads only the named array. Errors: also an unknown name; the text lists those there are.
TENON_API Tensor load_npz(const std::string& path, const std::string& name);

enum class NpzCompression { none, deflate };

/// Writes an .npz atomically, as numpy.savez or numpy.savez_compressed does.
/// Errors  those of save_npy; a duplicate name, or one that is empty, ends in ".npy" or has more
///         than 65000 bytes.
TENON_API void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors,
                        NpzCompression compression = NpzCompression::none);

}  // namespace tenon
