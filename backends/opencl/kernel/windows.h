// SPDX-License-Identifier: Apache-2.0
// windows.h - windows that slide over images; passed to kernels by value.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::opencl {

/// `Windows` of kernel/common.cl: rows, then columns. Images with one spatial dimension have one row.
struct Windows {
  std::int64_t size[2] = {1, 1};   ///< of the image
  std::int64_t count[2] = {1, 1};  ///< windows along each dimension
  std::int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1}, before[2] = {0, 0}, after[2] = {0, 0};

  std::int64_t elements() const { return size[0] * size[1]; }
  std::int64_t windows() const { return count[0] * count[1]; }
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
};

/// `Attributes`: tenon_attributes_window or tenon_attributes_conv; the caller sets what follows from the operands.
template <class Attributes>
Windows windows_of(const Attributes& a, const sdk::Operand& image) {
  Windows w;
  const std::uint32_t dims = image.rank - 2;
  for (std::uint32_t i = 0; i < dims; ++i) {
    const std::uint32_t d = i + 2 - dims;
    w.size[d] = image.shape[i + 2];
    w.stride[d] = a.strides[i];
    w.dilation[d] = a.dilations[i];
    w.before[d] = a.pads_before[i];
    w.after[d] = a.pads_after[i];
    if constexpr (requires { a.kernel; }) w.kernel[d] = a.kernel[i];
  }
  return w;
}
/// The spatial sizes of an operand (a, b, d...).
inline void set_spatial(std::int64_t (&out)[2], const sdk::Operand& x) {
  const std::uint32_t dims = x.rank - 2;
  for (std::uint32_t i = 0; i < dims; ++i) out[i + 2 - dims] = x.shape[i + 2];
}

/// Traits::refuse of ops on images.
inline const char* refuse_volumes(const sdk::Call& call) {
  return call.input_count > 0 && call.inputs[0].rank > 4 ? "images have one or two spatial dimensions here" : nullptr;
}

}  // namespace tenon::opencl
