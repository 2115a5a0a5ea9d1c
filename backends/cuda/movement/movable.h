// SPDX-License-Identifier: Apache-2.0
// movable.h - ops that only move elements treat them as bytes: four kernels serve the thirteen types of TENON_MOVABLE_TYPES.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/element.h>

namespace tenon::cuda {

namespace detail {
template <std::size_t size>
struct Bits;
template <>
struct Bits<1> {
  using Type = std::uint8_t;
};
template <>
struct Bits<2> {
  using Type = std::uint16_t;
};
template <>
struct Bits<4> {
  using Type = std::uint32_t;
};
template <>
struct Bits<8> {
  using Type = std::uint64_t;
};
}  // namespace detail

/// The unsigned integer of the size of T.
template <class T>
using BitsOf = typename detail::Bits<sizeof(T)>::Type;

}  // namespace tenon::cuda
