// SPDX-License-Identifier: Apache-2.0
// blas/alignment.h - the addresses of vectors and matrices, held against the alignment that their device needs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <tenon/blas.h>

namespace tenon::blas {

/// `alignment` in bytes, a power of two; at least that of a real number of T is checked. Scalars need no more than that.
/// Errors  ArgumentError for a vector or matrix that starts elsewhere.
template <class T, class Arguments>
void check_alignment(Routine routine, const Arguments& p, std::uint64_t alignment) {
  alignment = std::max<std::uint64_t>(alignment, alignof(T));
  const auto check = [&](const char* argument, std::uint64_t address) {
    if ((address & (alignment - 1)) == 0) return;
    throw ArgumentError(
        routine, argument,
        fmt::format("is {:#x}: expected a multiple of {} bytes, which the device needs; copy it to the start of an allocation "
                    "of its own",
                    address, alignment));
  };
  std::int64_t batch = 0;
  if constexpr (requires { p.batch; }) batch = p.batch;
  const auto operand = [&check, batch](const char* argument, const auto& given) {
    using Given = std::remove_cvref_t<decltype(given)>;
    if constexpr (std::is_same_v<Given, const std::uint64_t*>) {  // of a batch
      for (std::int64_t i = 0; i < batch; ++i) check(argument, given[i]);
    } else {
      static_cast<void>(batch);
      check(argument, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(given)));
    }
  };
  if constexpr (requires { p.lda; }) operand("a", p.a);
  if constexpr (requires { p.ldb; }) operand("b", p.b);
  if constexpr (requires { p.incx; }) operand("x", p.x);
  if constexpr (requires { p.incy; }) operand("y", p.y);
  if constexpr (requires { p.ldc; }) operand("c", p.c);
}

}  // namespace tenon::blas
