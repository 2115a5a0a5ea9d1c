// SPDX-License-Identifier: Apache-2.0
#include "core/memory_view.h"

#include <limits>
#include <memory>

#include "core/strided.h"

namespace tenon {
namespace {

/// True if the distance from the lowest to the highest element in bytes fits 63 bits. Always true for a shape without elements.
bool is_addressable(const Shape& shape, const std::int64_t* strides, std::int64_t size) {
  std::int64_t reach = size;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    std::int64_t way = strides[i];
    if (way == std::numeric_limits<std::int64_t>::min() || __builtin_mul_overflow(way < 0 ? -way : way, shape[i] - 1, &way) ||
        __builtin_mul_overflow(way, size, &way) || __builtin_add_overflow(reach, way, &reach)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Tensor view_of_memory(const std::string& what, std::uint64_t address, const std::string& where, DType dtype, const Shape& shape,
                      const std::int64_t* strides) {
  const bool is_empty = shape.count() == 0;
  if (address == 0 && !is_empty) throw Error(what + ": expected memory for " + shape.str() + ", got a null pointer");
  const std::int64_t size = size_of(dtype);
  // Complex numbers have the alignment of their parts.
  const std::int64_t aligned = dtype == DType::c64 || dtype == DType::c128 ? size / 2 : size;
  if (!is_empty && address % static_cast<std::uint64_t>(aligned) != 0) {
    throw Error(what + ": expected " + name_of(dtype) + " elements aligned to " + std::to_string(aligned) + " bytes, got " + where);
  }
  const auto dense = dense_strides(shape);
  const std::int64_t* of_elements = strides != nullptr ? strides : dense.data();
  if (!is_empty && !is_addressable(shape, of_elements, size)) {
    throw Error(what + ": expected strides that 64 bits can address, got others for " + shape.str());
  }
  auto storage = std::make_shared<Storage>();
  Tensor tensor = Tensor::make(storage, address, dtype, shape, of_elements);
  if (!is_empty) {
    const Reach reach = reach_of(shape, of_elements);
    storage->address = address + static_cast<std::uint64_t>(reach.lowest * size);
    storage->size_bytes = static_cast<std::uint64_t>(reach.count() * size);
  }
  return tensor;
}

}  // namespace tenon
