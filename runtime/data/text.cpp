// SPDX-License-Identifier: Apache-2.0
// data/text.cpp - text as labels of its characters; the target of a sample is shifted by one character.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <tenon/data.h>
#include <tenon/error.h>

#include "data/token_stream.h"
#include "io/gzip.h"
#include "io/utf8.h"

namespace tenon {
namespace {

std::string place_of(std::string_view text, std::size_t at, const std::string& name) {
  return fmt::format("{}:{}", name, std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
}

/// Calls take(character, offset) for each character.
template <class Take>
void for_each_character(std::string_view text, const std::string& name, Take&& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      throw Error(fmt::format("{}: expected text in UTF-8, got the byte 0x{:02x}; convert the file by `iconv -t UTF-8`",
                              place_of(text, at, name), static_cast<unsigned char>(text[at])));
    }
    take(text.substr(at, length), at);
    at += length;
  }
}

}  // namespace

Alphabet::Alphabet(const std::vector<std::string>& characters) : characters_(characters) {
  for (const std::string& character : characters) {
    if (character.empty() || utf8_length(character) != character.size()) {
      throw Error(fmt::format("alphabet: expected one character in UTF-8, got '{}'", character));
    }
    if (!labels_.emplace(character, labels_.size()).second) throw Error(fmt::format("alphabet: '{}' is given twice", character));
  }
}

Alphabet Alphabet::of_text(std::string_view text, const std::string& name) {
  std::set<std::string, std::less<>> found;  // the order of bytes in UTF-8 is that of the code points
  for_each_character(text, name, [&](std::string_view character, std::size_t) {
    if (!found.contains(character)) found.emplace(character);
  });
  return Alphabet(std::vector<std::string>(found.begin(), found.end()));
}

Tensor Alphabet::encode(std::string_view text, const std::string& name) const {
  std::vector<std::int64_t> labels;
  labels.reserve(text.size());
  for_each_character(text, name, [&](std::string_view character, std::size_t at) {
    const auto found = labels_.find(character);
    if (found == labels_.end()) {
      throw Error(
          fmt::format("{}: expected one of the {} characters that the model knows, got '{}'", place_of(text, at, name), size(), character));
    }
    labels.push_back(found->second);
  });
  return Tensor::of(labels, {static_cast<std::int64_t>(labels.size())});
}

TextData load_text(const std::string& path, const TextOptions& options) {
  const std::vector<std::uint8_t> bytes = io::read_maybe_gzip(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  TextData result;
  result.alphabet = options.alphabet ? options.alphabet : std::make_shared<const Alphabet>(Alphabet::of_text(text, path));
  result.data = data::token_samples(path, result.alphabet->encode(text, path), options.sequence);
  return result;
}

}  // namespace tenon
