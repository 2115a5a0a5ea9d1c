// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/vendor_schema.h - the schema of a vendor's op, as tenon_vendor_op states it:
// "x:T bias:T? -> y:T; limit:float axes:ints=[] mode:string=soft".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenon/backend.h>

namespace tenon::sdk {

/// The value of an attribute. Its index plus 1 is the type, TENON_ATTRIBUTE_*.
using AttributeValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
/// "int", "float", "string", "ints", "floats"; "unknown" for another number.
const char* attribute_type_name(std::uint32_t type);

/// A schema of tenon_vendor_op, in its parts.
struct VendorSchema {
  struct Operand {
    std::string name;
    std::string types;      ///< for readers: `infer` checks dtypes
    bool optional = false;  ///< may be absent
    bool operator==(const Operand&) const = default;
  };
  struct Attribute {
    std::string name;
    std::uint32_t type = 0;                       ///< TENON_ATTRIBUTE_*
    std::optional<AttributeValue> default_value;  ///< empty: the attribute must be given
    bool operator==(const Attribute&) const = default;
  };
  std::vector<Operand> operands, results;
  std::vector<Attribute> attributes;

  /// Throws INVALID_ARGUMENT: "expected ..., got ...".
  static VendorSchema parse(std::string_view text);
  /// The schema with single spaces and without defaults: "x:T bias:T? -> y:T; limit axes".
  std::string str() const;
  bool operator==(const VendorSchema&) const = default;
};
/// "com.example.SoftClip".
std::string full_name(const tenon_vendor_op& op);
/// True for a domain (lower-case words joined by dots) and a name of an op.
bool is_vendor_domain(std::string_view domain);
bool is_vendor_op_name(std::string_view name);

}  // namespace tenon::sdk
