// SPDX-License-Identifier: Apache-2.0
// data/tokens.cpp - text as word ids; the target of a sample is shifted by one word.
//
// Source  Mikolov et al.: Recurrent neural network based language model (2010), whose Penn Treebank files define the format.
#include <algorithm>

#include <tenon/data.h>

#include "data/draw.h"
#include "data/files.h"
#include "data/streams.h"
#include "data/token_stream.h"
#include "io/gzip.h"

namespace tenon {
namespace {

constexpr const char* unknown_word = "<unk>";
constexpr const char* end_word = "<eos>";

/// Calls take(word) for each word and for the end of each line.
template <class Take>
void for_each_token(std::string_view text, Take&& take) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\v\f\n", at), text.size());
    if (end > at) take(text.substr(at, end - at));
    if (end < text.size() && text[end] == '\n') take(std::string_view(end_word));
    at = end + 1;
  }
}

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& words) : words_{unknown_word, end_word} {
  words_.insert(words_.end(), words.begin(), words.end());
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (!ids_.emplace(words_[i], static_cast<std::int64_t>(i)).second) throw Error("vocabulary: word '" + words_[i] + "' is given twice");
  }
}

Vocabulary Vocabulary::of_text(std::string_view text, std::int64_t size) {
  if (size < 3) throw Error("vocabulary: expected a size of at least 3, including <unk> and <eos>, got " + std::to_string(size));
  std::map<std::string_view, std::int64_t> counts;
  for_each_token(text, [&](std::string_view word) { ++counts[word]; });
  counts.erase(unknown_word);
  counts.erase(end_word);
  std::vector<std::pair<std::string_view, std::int64_t>> words(counts.begin(), counts.end());
  std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (static_cast<std::int64_t>(words.size()) > size - 2) words.resize(static_cast<std::size_t>(size - 2));
  std::vector<std::string> kept;
  for (const auto& [word, count] : words) kept.emplace_back(word);
  return Vocabulary(kept);
}

std::int64_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? unknown : found->second;
}

const std::string& Vocabulary::word(std::int64_t id) const {
  if (id < 0 || id >= size()) {
    throw Error("vocabulary: id " + std::to_string(id) + " is out of range, expected 0 to " + std::to_string(size() - 1));
  }
  return words_[static_cast<std::size_t>(id)];
}

Tensor Vocabulary::encode(std::string_view text) const {
  std::int64_t count = 0;
  for_each_token(text, [&](std::string_view) { ++count; });
  Tensor tokens = Tensor::empty(DType::i64, {count});
  auto* to = tokens.data<std::int64_t>();
  for_each_token(text, [&](std::string_view word) { *to++ = id(word); });
  return tokens;
}

std::shared_ptr<const ArrayDataset> data::token_samples(const std::string& name, const Tensor& tokens, std::int64_t sequence) {
  if (sequence < 1) throw Error(name + ": expected a sequence of at least 1 token, got " + std::to_string(sequence));
  const std::int64_t count = (tokens.count() - 1) / sequence;
  if (tokens.count() < 2 || count < 1) {
    throw Error(name + ": expected at least " + std::to_string(sequence + 1) + " tokens, a sequence of " + std::to_string(sequence) +
                " and the next token, got " + std::to_string(tokens.count()));
  }
  ArrayOptions array;
  array.name = name;
  array.x_dtype = DType::i64;
  const Tensor x = tokens.slice(0, 0, count * sequence).reshape({count, sequence});
  const Tensor y = tokens.slice(0, 1, count * sequence + 1).reshape({count, sequence});
  return std::make_shared<const ArrayDataset>(x, y, array);
}

TokenData load_tokens(const std::string& path, const TokenOptions& options) {
  const std::vector<std::uint8_t> bytes = io::read_maybe_gzip(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n') + 1;
    throw Error(path + ":" + std::to_string(line) + ": expected text, got a zero byte");
  }
  TokenData result;
  result.vocabulary = options.words ? options.words : std::make_shared<const Vocabulary>(Vocabulary::of_text(text, options.vocabulary));
  result.data = data::token_samples(path, result.vocabulary->encode(text), options.sequence);
  return result;
}

std::shared_ptr<const ArrayDataset> generate_tokens(const TokenStreamOptions& options) {
  const std::string name = std::string("tokens ") + name_of(options.split);
  if (options.vocabulary < 3 || options.vocabulary > std::int64_t{1} << 31) {
    throw Error(name + ": expected a vocabulary of 3 to 2^31 words, got " + std::to_string(options.vocabulary));
  }
  if (options.count < 2) throw Error(name + ": expected a count of at least 2 tokens, got " + std::to_string(options.count));
  constexpr std::int64_t first_word = 2;  // after <unk> and <eos>
  const std::int64_t words = options.vocabulary - first_word;
  data::Draw draw(options.seed, 0, data::stream_of_tokens + static_cast<std::uint32_t>(options.split));
  Tensor tokens = Tensor::empty(DType::i64, {options.count});
  auto* to = tokens.data<std::int64_t>();
  std::int64_t last = Vocabulary::end_of_sentence;
  for (std::int64_t i = 0; i < options.count; ++i) {
    if (last != Vocabulary::end_of_sentence && draw.below(16) == 0) {
      last = Vocabulary::end_of_sentence;
    } else if (draw.below(4) > 0) {
      // One of the four likely successors of the last word, which depend only on the seed; the first is twice as likely as the others.
      data::Draw successors(options.seed, last, data::stream_of_followers);
      const std::int64_t which = std::max<std::int64_t>(draw.below(5) - 1, 0);
      for (std::int64_t f = 0; f <= which; ++f) last = first_word + successors.below(words);
    } else {
      // Nested draws make low ids frequent, similar to real text.
      last = first_word + draw.below(draw.below(draw.below(words) + 1) + 1);
    }
    to[i] = last;
  }
  return data::token_samples(name, tokens, options.sequence);
}

}  // namespace tenon
