// tenon/reference.h - what the reference pages are made of besides the lists: comments of public headers, graphs of front-end functions.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon::cli {

/// A field of an attribute struct, and the comment behind it.
struct AttributeField {
  std::string name, type, comment;
};
struct AttributeStruct {
  std::string comment;  ///< what stands before it
  std::vector<AttributeField> fields;
};
/// The structs tenon_attributes_<name> of tenon/backend.h, by name.
std::map<std::string, AttributeStruct> attribute_structs(const std::string& header);

/// Names of the functions of tenon/functions.h, each once, in the header's order.
std::vector<std::string> front_end_functions(const std::string& header);

/// The wire ops that a front-end function which is no op itself makes, each once, in the order of an example. Errors: a function that has
/// no example here.
std::vector<std::string> ops_made_by(const std::string& function);

}  // namespace tenon::cli
