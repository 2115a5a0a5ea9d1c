// SPDX-License-Identifier: Apache-2.0
// tenon/decoder.h - continues sequences with a language model, step by step, and text with a trained
// run. `tenon generate` is the class TextGenerator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/tensor.h>
#include <tenon/training_run.h>

namespace tenon {

/// Computes the scores of the next label of one sequence. Keys and values of attention layers and
/// states of recurrent layers are kept in device memory, so that a step costs what one step costs,
/// whatever the number of steps before. Every label is a step: Embedding::padding_index is not
/// regarded. Has a copy of the model's weights and outlives the model.
/// Threads  one thread at a time.
class TENON_API Decoder {
 public:
  /// The model maps labels (batch, time) to scores (batch, time, classes) and has weights. `capacity`
  /// is the number of steps that are kept; 0: the time steps of the model's samples.
  /// Errors  a layer whose result at a step depends on later steps, or on more steps than it keeps;
  ///         a position_embedding of fewer than `capacity` positions; a model of another kind.
  explicit Decoder(Model& model, std::int64_t capacity = 0);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// The number of steps that are kept.
  std::int64_t capacity() const;
  /// The number of steps that are in use, 0 to capacity().
  std::int64_t position() const;
  /// The bytes that a step reads: weights, and keys and values.
  std::int64_t size_bytes() const;
  /// Appends labels (at least one) and returns the scores (classes) of the next label, on the host,
  /// as the model computes them before a final softmax. If the labels exceed the capacity, the older
  /// half of what is kept is dropped and the rest is computed again, from position 0.
  /// Errors  those of a prediction: a label that the embedding does not have.
  Tensor append(std::span<const std::int64_t> labels);
  /// Forgets the sequence.
  void reset();

 private:
  struct TENON_HIDDEN State;
  std::unique_ptr<State> state_;
};

/// How a label is chosen from scores. All of it applies in this order.
struct Sampling {
  double temperature = 1;  ///< divides the scores; 0: always the label with the best score
  std::int64_t top_k = 0;  ///< only the k best labels; 0: all
  /// only the best labels whose probabilities sum up to top_p, at least one; in (0, 1]
  double top_p = 1;
  std::uint64_t seed = 1;
};

/// Draws labels. The same seed and scores give the same labels.
/// Source  Holtzman et al.: The Curious Case of Neural Text Degeneration (2020) for top_p.
class TENON_API Sampler {
 public:
  /// Errors  a negative temperature or top_k, a top_p outside (0, 1].
  explicit Sampler(const Sampling& sampling);
  /// A label for scores (classes), f32 or f64 on the host; the smaller one of equal scores comes
  /// first. Only the first `labels` classes are considered; 0: all.
  /// Errors  scores that are NaN.
  std::int64_t choose(const Tensor& scores, std::int64_t labels = 0);

 private:
  Sampling sampling_;
  std::int64_t drawn_ = 0;
};

/// Continues text with a run that was trained on text (`source: text` or `tokens`); with a run on
/// other sequences, text is labels separated by blanks.
///
///   TextGenerator generator = TextGenerator::load("runs/gpt");
///   std::cout << generator.generate("In the beginning", 200, {.temperature = 0.8});
///
/// Threads  one thread at a time.
class TENON_API TextGenerator {
 public:
  /// `run`, `checkpoint` and `overrides` are those of Predictor::load, `capacity` that of Decoder.
  static TextGenerator load(const std::string& run, const std::string& checkpoint = "",
                            const std::vector<ConfigOverride>& overrides = {},
                            std::int64_t capacity = 0);
  /// `run` has its weights; `preprocessing` is that of its training data.
  TextGenerator(TrainingRun run, const Preprocessing& preprocessing, std::int64_t capacity = 0);

  /// Text that follows the prompt: `count` labels, characters or words. Calls `take`, which may be
  /// null, with each piece as it comes, and stops early if it returns false. An empty prompt begins
  /// with a line break, or with the label 0 where there is none.
  /// Errors  a character of the prompt that the run does not know; those of Sampler.
  std::string generate(const std::string& prompt, std::int64_t count, const Sampling& sampling = {},
                       const std::function<bool(const std::string& piece)>& take = nullptr);
  /// The decoder, which holds the prompt and what was generated.
  Decoder& decoder() { return decoder_; }
  /// The run.
  TrainingRun& run() { return run_; }

 private:
  std::vector<std::int64_t> labels_of(const std::string& text) const;
  std::string text_of(std::int64_t label, bool first) const;

  TrainingRun run_;
  std::vector<std::string> names_;  ///< by label
  bool characters_ = false;
  Decoder decoder_;
};

}  // namespace tenon
