// SPDX-License-Identifier: Apache-2.0
// generate_docs.h - sources of the reference pages other than the op lists: comments of public headers, graphs of front-end functions.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon::cli {

/// A field of an attribute struct, and the comment after it.
struct AttributeField {
  std::string name, type, comment;
};
struct AttributeStruct {
  std::string comment;  ///< the comment before the struct
  std::vector<AttributeField> fields;
};
/// The structs tenon_attributes_<name> of tenon/backend.h by name; `header` is the text of that file.
std::map<std::string, AttributeStruct> attribute_structs(const std::string& header);

/// The distinct names of the functions of tenon/elementwise_functions.h and tenon/functions.h, in the order of the headers.
std::vector<std::string> front_end_functions(const std::filesystem::path& include);
/// The text of a file. Errors: it cannot be read.
std::string text_of(const std::filesystem::path& file);

/// The distinct ABI ops that an example of a front-end function creates, in order.
/// Errors  a function without an example.
std::vector<std::string> ops_made_by(const std::string& function);

}  // namespace tenon::cli
