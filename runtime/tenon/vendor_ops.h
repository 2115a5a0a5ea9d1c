// SPDX-License-Identifier: Apache-2.0
// tenon/vendor_ops.h - ops that only some backends have, which their vendors define.
//
//   const Value y = ops::call("com.example.SoftClip", {x}, {{"limit", 3.0}})[0];
//
// A backend declares its own ops, and a Context that loads the backend makes them known to the
// process; docs/backends.md says how backends are found. The nodes of such an op run on the
// backends that declare it. It has no gradient, and it is computed in the dtypes of its operands.
//
// Threads  any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <tenon/api.h>
#include <tenon/graph.h>

namespace tenon {

/// The value of an attribute: an integer, a number, a text, or a list of integers or numbers. An
/// integer may stand for a number, and a list of integers for one of numbers.
using AttributeValue =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
/// Attributes by name. Those that the op's schema gives a default may be left out.
using AttributeValues = std::map<std::string, AttributeValue>;

/// The id of a vendor's op in this process, for Graph::apply and Context::apply. `name` is
/// "<domain>.<name>"; version 0 is the newest that a loaded backend has.
/// Errors  the op is not known, or no loaded backend has it any more: with the ops of that domain.
TENON_API tenon_op vendor_op(const std::string& name, std::uint32_t version = 0);

/// The attributes of a node of this op, complete with the defaults of its schema.
/// Errors  an attribute that the op does not have, that is missing, or that has another type.
TENON_API Attributes vendor_attributes(tenon_op op, const AttributeValues& values);

namespace ops {

/// Applies a vendor's op and returns its results. `inputs` are the operands of its schema; a
/// default-constructed Value is an absent one.
/// Errors  those of vendor_op and vendor_attributes; another number of operands; what the backend
///         says of their dtypes and shapes.
TENON_API std::vector<Value> call(const std::string& name, const std::vector<Value>& inputs,
                                  const AttributeValues& attributes = {},
                                  std::uint32_t version = 0);

}  // namespace ops
}  // namespace tenon
