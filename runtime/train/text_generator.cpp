// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include <tenon/decoder.h>
#include <tenon/error.h>
#include <tenon/predictor.h>

namespace tenon {
namespace {

constexpr const char* end_of_sentence = "<eos>";

DataSource source_of(const TrainingRun& run) {
  return run.definition().data ? run.definition().data->source : DataSource::markov;
}

}  // namespace

TextGenerator TextGenerator::load(const std::string& run, const std::string& checkpoint, const std::vector<ConfigOverride>& overrides,
                                  std::int64_t capacity) {
  Predictor predictor = Predictor::load(run, checkpoint, overrides);
  return {std::move(predictor.run()), predictor.preprocessing(), capacity};
}

TextGenerator::TextGenerator(TrainingRun run, const Preprocessing& preprocessing, std::int64_t capacity)
    : run_(std::move(run)),
      names_(preprocessing.class_names),
      characters_(source_of(run_) == DataSource::text),
      decoder_(run_.model(), capacity) {}

std::vector<std::int64_t> TextGenerator::labels_of(const std::string& text) const {
  std::vector<std::int64_t> labels;
  if (characters_ || !names_.empty()) {
    const Tensor encoded = characters_ ? Alphabet(names_).encode(text, "prompt") : [&] {
      return Vocabulary(std::vector<std::string>(names_.begin() + 2, names_.end())).encode(text);
    }();
    labels.assign(encoded.data<std::int64_t>(), encoded.data<std::int64_t>() + encoded.count());
  } else {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      std::int64_t label = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), label);
      if (error != std::errc() || end != word.data() + word.size()) {
        throw Error(fmt::format("prompt: expected labels separated by blanks, as the run has no text, got '{}'", word));
      }
      labels.push_back(label);
    }
  }
  if (labels.empty()) {
    const std::string start = characters_ ? "\n" : end_of_sentence;
    const auto found = std::find(names_.begin(), names_.end(), start);
    labels.push_back(found == names_.end() ? 0 : found - names_.begin());
  }
  return labels;
}

std::string TextGenerator::text_of(std::int64_t label, bool first) const {
  const auto index = static_cast<std::size_t>(label);
  const std::string name = index < names_.size() ? names_[index] : std::to_string(label);
  if (characters_) return name;
  if (name == end_of_sentence) return "\n";
  return first ? name : " " + name;
}

std::string TextGenerator::generate(const std::string& prompt, std::int64_t count, const Sampling& sampling,
                                    const std::function<bool(const std::string& piece)>& take) {
  Sampler sampler(sampling);
  decoder_.reset();
  Tensor scores = decoder_.append(labels_of(prompt));
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = sampler.choose(scores, static_cast<std::int64_t>(names_.size()));
    const std::string piece = text_of(label, i == 0 && prompt.empty());
    text += piece;
    if ((take != nullptr && !take(piece)) || i + 1 == count) break;
    scores = decoder_.append({&label, 1});
  }
  return text;
}

}  // namespace tenon
