// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <regex>

#include "generate_docs.h"

namespace tenon::cli {
namespace {

/// The text of a comment without comment markers.
std::string plain(const std::string& comment) {
  static const std::regex marks("/\\*|\\*/|\\n *\\*|///<?"), spaces("\\s+");
  const std::string text = std::regex_replace(std::regex_replace(comment, marks, " "), spaces, " ");
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

}  // namespace

std::map<std::string, AttributeStruct> attribute_structs(const std::string& header) {
  static const std::regex field("(\\w+) (\\w+)(?:\\[(\\w+)\\])?;[ ]*(/\\*[\\s\\S]*?\\*/)?");
  std::map<std::string, AttributeStruct> structs;
  const std::string begin = "typedef struct tenon_attributes_";
  for (std::size_t at = 0; (at = header.find(begin, at)) != std::string::npos;) {
    const std::size_t name = at + begin.size(), open = header.find(" {", name), close = header.find("\n} ", open);
    AttributeStruct& made = structs[header.substr(name, open - name)];
    // A comment that ends on the previous line belongs to the struct.
    if (at >= 3 && header.compare(at - 3, 3, "*/\n") == 0) {
      const std::size_t start = header.rfind("/*", at);
      if (start == 0 || header[start - 1] == '\n') made.comment = plain(header.substr(start, at - start));
    }
    const std::string body = header.substr(open, close - open + 1);
    for (std::sregex_iterator found(body.begin(), body.end(), field), end; found != end; ++found) {
      const std::smatch& match = *found;
      if (match[2] == "struct_size" || match[2] == "reserved") continue;
      made.fields.push_back({match[2], match[1].str() + (match[3].matched ? "[" + match[3].str() + "]" : ""), plain(match[4])});
    }
    at = close;
  }
  return structs;
}

std::vector<std::string> front_end_functions(const std::filesystem::path& include) {
  static const std::regex declaration("\\nTENON_API .*?(\\w+)\\(");
  std::vector<std::string> names;
  for (const char* const file : {"elementwise_functions.h", "functions.h"}) {
    const std::string header = text_of(include / file);
    const std::string body = header.substr(0, header.find("}  // namespace tenon::ops"));
    for (std::sregex_iterator found(body.begin(), body.end(), declaration), end; found != end; ++found) {
      const std::string name = (*found)[1];
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace tenon::cli
