// SPDX-License-Identifier: Apache-2.0
// tenon/attributes.h - the attributes of ops by name.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/backend.h>
#include <tenon/vendor_ops.h>

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

/// The number of an op of tenon/ops.def, "MatMul", or of a vendor's op, "com.example.SoftClip".
/// Errors  no op of that name, with one that is similar; those of vendor_op.
TENON_API tenon_op op_from_name(const std::string& name);

/// What an attribute of an op may be.
struct AttributeInfo {
  std::string name;                ///< as in the op's line in tenon/ops.def: "axis", "perm"
  std::string kind;                ///< "flag", "number", "numbers", "word" or "dtype"
  std::vector<std::string> words;  ///< of a word
  /// The value if it is not given; nothing: it is required.
  std::optional<AttributeValue> usual;
};
/// The attributes of an op of tenon/ops.def.
TENON_API std::vector<AttributeInfo> attributes_of_op(tenon_op op);

/// The attributes of a node of this op, by name. Words and dtypes are texts, flags 0 or 1.
/// Errors  an attribute that the op does not have, that is missing, or that has another type; those
///         of vendor_attributes.
TENON_API Attributes attributes_from(tenon_op op, const AttributeValues& values);

}  // namespace tenon
