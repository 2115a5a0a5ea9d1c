// tenon/npy.h - arrays in NumPy's files: .npy, one array; .npz, a zip archive of them.
#pragma once

#include <string>
#include <vector>

#include <tenon/safetensors.h>
#include <tenon/tensor.h>

namespace tenon {

/// Reads a .npy file of version 1.0 to 3.0 into a dense host tensor. Fortran order is transposed, big-endian elements are swapped. Every
/// number in it is checked before it is used, so a damaged or hostile file costs no more memory than its own size.
///
/// Dtypes  bool, i8 to i64, u8 to u64, f16, f32, f64, c64, c128.
/// Errors  name the file, what was wanted and what was got: no .npy file, another version, a dtype that has no counterpart (objects,
///         texts, records), more than eight dimensions, too few or too many bytes for the shape.
Tensor load_npy(const std::string& path);

/// Writes version 1.0, row-major, in one step: whatever happens, `path` holds either its old content or all of the new one.
/// Errors  bf16, which the format does not have; a file that cannot be written.
void save_npy(const std::string& path, const Tensor& tensor);

/// Reads the arrays of an .npz file in the order of the archive, members stored or deflated, names without ".npy".
/// Errors  as load_npy, with the member named ("a.npz: member 'x.npy': ..."); an archive that is damaged, split or encrypted, a member
///         whose CRC differs.
std::vector<NamedTensor> load_npz(const std::string& path);
/// One array of them, the others unread. Errors  also: no array of this name; the text lists those there are.
Tensor load_npz(const std::string& path, const std::string& name);

enum class NpzCompression { none, deflate };

/// Writes an .npz as numpy.savez does, or numpy.savez_compressed, in one step as save_npy.
/// Errors  those of save_npy; a name twice, or one that is empty, ends in ".npy" or has more than 65000 bytes.
void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, NpzCompression compression = NpzCompression::none);

}  // namespace tenon
