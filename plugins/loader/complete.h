// SPDX-License-Identifier: Apache-2.0
// loader/complete.h - completes a plugin's structs: fields unknown to its header become zero, fields unknown to ours are dropped.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <tenon/backend.h>

namespace tenon::loader {

/// Copies the fields that `struct_size` covers wholly; the rest of the result is zero. Its struct_size is ours.
/// Fields of ABI structs never straddle a multiple of 8 bytes, so a size that ends inside a field loses only that field.
template <class Struct>
Struct completed(const Struct& sent, std::uint32_t struct_size) {
  const std::size_t known = struct_size < sizeof(Struct) ? struct_size : sizeof(Struct);
  Struct result{};
  std::memcpy(&result, &sent, known / 8 * 8);
  return result;
}
template <class Struct>
Struct completed(const Struct& sent) {
  Struct result = completed(sent, sent.struct_size);
  result.struct_size = sizeof(Struct);
  return result;
}

/// A plugin's answer to the query. The arrays of `info` are the members after it. Moving keeps them valid, copying would not.
struct Answer {
  Answer() = default;
  Answer(Answer&&) = default;
  Answer& operator=(Answer&&) = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  tenon_backend_info info{};
  std::vector<tenon_capability> capabilities;
  std::vector<tenon_option> options;
  std::vector<tenon_vendor_op> vendor_ops;
};

/// Reads `sent` as far as its struct_size reaches. Throws a LoadError for a size below that of ABI 1.0 and for arrays that
/// contradict their counts.
Answer complete_answer(const tenon_backend_info& sent);

/// A backend's table and its optional blocks, complete. Not movable: the table points to its neighbours.
struct Table {
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  tenon_backend_table table{};
  tenon_blas_table blas{};
  tenon_capture_table capture{};
  tenon_pack_table pack{};
  tenon_profile_table profile{};
  tenon_collectives_table collectives{};
};

/// Throws a LoadError for a size below that of ABI 1.0, for empty mandatory slots and for BLAS routines without dtypes, by name.
void complete_table(const tenon_backend_table& sent, Table& out_table);

}  // namespace tenon::loader
