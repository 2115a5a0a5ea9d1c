// SPDX-License-Identifier: Apache-2.0
// tenon/attributes.h - the fields of an attribute struct by name, for what prints or reads them.
#pragma once

#include <cmath>
#include <cstddef>

#include <tenon/backend.h>

namespace tenon {

/// visit_fields(a, visitor) calls for each field of `a`, with a reference to it, the member of
/// `visitor` for its kind in tenon/attributes.def: flag, value, optional, word, dtype, list,
/// optional_list, counted_list or value_if.
#define TENON_ATTRIBUTES(name, fields)                           \
  template <class Visitor>                                       \
  void visit_fields([[maybe_unused]] tenon_attributes_##name& a, \
                    [[maybe_unused]] Visitor& visitor) {         \
    fields                                                       \
  }
#define TENON_FLAG(field) visitor.flag(#field, a.field);
#define TENON_VALUE(field) visitor.value(#field, a.field);
#define TENON_OPTIONAL(field, usual) visitor.optional(#field, a.field, usual);
#define TENON_WORD(field, ...) visitor.word(#field, a.field, {__VA_ARGS__});
#define TENON_DTYPE_FIELD(field) visitor.dtype(#field, a.field);
#define TENON_LIST(field, rest) visitor.list(#field, a.field, rest);
#define TENON_OPTIONAL_LIST(field, rest) visitor.optional_list(#field, a.field, rest);
#define TENON_COUNTED_LIST(field, count) visitor.counted_list(#field, a.field, a.count);
#define TENON_VALUE_IF(field, has) visitor.value_if(#field, a.field, a.has);
#include <tenon/attributes.def>

}  // namespace tenon
