// SPDX-License-Identifier: Apache-2.0
// core/memory_view.h - tensors in memory that another library describes.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/tensor.h>

namespace tenon {

/// A view of memory whose element (0, ..., 0) is at `address`; strides in elements, null: dense. Nothing keeps the memory alive: the caller
/// sets the owner of the storage.
/// Errors  begin with `what`: a null address for elements; one that is not aligned to the element, for which the text gives `where`;
///         strides that 64 bits cannot address.
Tensor view_of_memory(const std::string& what, std::uint64_t address, const std::string& where, DType dtype, const Shape& shape,
                      const std::int64_t* strides);

}  // namespace tenon
