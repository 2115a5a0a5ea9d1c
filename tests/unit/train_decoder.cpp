// SPDX-License-Identifier: Apache-2.0
// Decoder, Sampler and TextGenerator: step by step against whole sequences, and text.
#include <tenon/decoder.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "config/model_yaml.h"
#include "temporary_folder.h"
#include "testing.h"

namespace tenon::test {
namespace {

Model language_model(const Context& context, const std::string& layers, std::int64_t time = 12, const char* dtype = "float64") {
  Model model(config::model_from_text(
      "dtype: " + std::string(dtype) + "\ninput: {shape: [" + std::to_string(time) + "], dtype: int64}\nlayers: [" + layers + "]\n",
      "model.yaml"));
  model.compile(context, {.optimizer = {}, .loss = {.loss = Loss::sparse_categorical_crossentropy}, .metrics = {}});
  return model;
}

/// The scores of each step of `labels`, by the whole sequence at once and step by step.
void check_steps(Model& model, const std::vector<std::int64_t>& labels, std::int64_t capacity = 0) {
  const std::int64_t time = model.sample_shape()[0];
  std::vector<std::int64_t> whole = labels;
  whole.resize(static_cast<std::size_t>(time), 0);
  const Tensor expected = model.predict(Tensor::of(whole, {1, time}));
  const std::int64_t classes = expected.shape()[2];
  Decoder decoder(model, capacity);
  for (std::size_t t = 0; t < labels.size(); ++t) {
    const Tensor scores = decoder.append({&labels[t], 1});
    REQUIRE(scores.shape() == Shape{classes});
    for (std::int64_t c = 0; c < classes; ++c) {
      const double whole_score = expected.data<double>()[static_cast<std::int64_t>(t) * classes + c];
      CHECK(scores.data<double>()[c] == doctest::Approx(whole_score).epsilon(1e-11).scale(1));
    }
  }
  CHECK(decoder.position() == static_cast<std::int64_t>(labels.size()));
}

const std::vector<std::int64_t> labels_of_test = {3, 1, 4, 1, 5, 0, 2, 6, 5, 3, 5};

TEST_CASE_FIXTURE(OnOpenblas, "decoder: the scores step by step are those of the whole sequence, for every layer that keeps something") {
  for (const char* const layers : {
           "embedding: {rows: 7, dim: 8}, attention: {heads: 4, causal: true}, dense: {units: 7}",
           "embedding: {rows: 7, dim: 8}, attention: {heads: 4, kv_heads: 2, rotary: true, causal: true, window: 4}, dense: {units: 7}",
           "embedding: {rows: 7, dim: 8, name: table}, position_embedding: {length: 12}, residual: {body: [layer_norm, attention: {heads: "
           "2, "
           "causal: true}]}, residual: {body: [rms_norm, dense: {units: 16, activation: gelu}, dense: {units: 8}]}, layer_norm, "
           "dense: {units: 7, tied: table}",
           "embedding: {rows: 7, dim: 6}, sinusoidal_position, dropout: {p: 0.5}, lstm: {units: 5, num_layers: 2, return_sequences: true}, "
           "gru: {units: 4, return_sequences: true}, rnn: {units: 4, return_sequences: true}, dense: {units: 7}",
       }) {
    CAPTURE(layers);
    Model model = language_model(context, layers);
    check_steps(model, labels_of_test);
  }
}

TEST_CASE_FIXTURE(OnReference, "decoder: on the oracle, and with more steps than the model's samples have") {
  Model model =
      language_model(context, "embedding: {rows: 7, dim: 8}, attention: {heads: 2, rotary: true, causal: true}, dense: {units: 7}");
  check_steps(model, labels_of_test, 40);
}

TEST_CASE_FIXTURE(OnOpenblas, "decoder: a prompt at once, in chunks, gives the scores of single steps; reset forgets") {
  Model model =
      language_model(context, "embedding: {rows: 50, dim: 8}, attention: {heads: 2, rotary: true, causal: true}, dense: {units: 50}", 100);
  std::vector<std::int64_t> prompt;
  for (std::int64_t i = 0; i < 77; ++i) prompt.push_back(i * i % 50);
  Decoder decoder(model), single(model);
  Tensor expected;
  for (const std::int64_t label : prompt) expected = single.append({&label, 1});
  for (int time = 0; time < 2; ++time) {
    const Tensor scores = decoder.append(prompt);
    CHECK(decoder.position() == 77);
    for (std::int64_t c = 0; c < 50; ++c) {
      CHECK(scores.data<double>()[c] == doctest::Approx(expected.data<double>()[c]).epsilon(1e-11).scale(1));
    }
    decoder.reset();
    CHECK(decoder.position() == 0);
  }
}

TEST_CASE_FIXTURE(OnOpenblas, "decoder: beyond its capacity it goes on with the newer half") {
  Model model = language_model(context, "embedding: {rows: 7, dim: 8}, attention: {causal: true, rotary: true}, dense: {units: 7}", 8);
  Decoder decoder(model), fresh(model);
  const std::vector<std::int64_t> first = {1, 2, 3, 4, 5, 6, 1, 2};
  decoder.append(first);
  const std::int64_t next = 3;
  const Tensor scores = decoder.append({&next, 1});
  CHECK(decoder.position() == 4);
  const Tensor expected = fresh.append(std::vector<std::int64_t>{6, 1, 2, 3});
  for (std::int64_t c = 0; c < 7; ++c) CHECK(scores.data<double>()[c] == expected.data<double>()[c]);
}

TEST_CASE_FIXTURE(OnReference, "decoder: models that look ahead, or at more than they keep, are rejected by layer") {
  const auto error = [&](const std::string& layers, std::int64_t capacity = 0) {
    return message_of([&] {
      Model model = language_model(context, layers);
      const Decoder decoder(model, capacity);
    });
  };
  const std::string start = "embedding: {rows: 7, dim: 8}, ", end = ", dense: {units: 7}";
  CHECK(contains(error(start + "attention: {heads: 2}" + end), "'attention' depends on more than the steps so far"));
  CHECK(contains(error(start + "lstm: {units: 3, bidirectional: true, return_sequences: true}" + end), "'lstm' depends on more"));
  CHECK(contains(error(start + "flatten" + end), "'flatten' depends on more"));
  CHECK(contains(error(start + "layer_norm: {axis: 1}" + end), "'layer_norm' depends on more"));
  CHECK(contains(error(start + "position_embedding: {length: 12}" + end, 20), "has 12 positions, expected at least 20"));
  CHECK(contains(error(start + "dense: {units: 7}", -1), "expected a capacity of at least 1 step"));
  Model unfit({layers::Dense{3}});
  unfit.compile(context, {.optimizer = {}, .loss = {.loss = Loss::mse}, .metrics = {}});
  unfit.build({4});
  CHECK_ERROR_CONTAINS("expected a model that maps labels (batch, time)", Decoder{unfit});
  Model known = language_model(context, start + "dense: {units: 7}");
  Decoder decoder(known);
  CHECK_ERROR_CONTAINS("expected at least one label", decoder.append({}));
  const std::int64_t beyond = 7;
  CHECK_ERROR_CONTAINS("7", decoder.append({&beyond, 1}));
}

TEST_CASE("sampler: the temperature 0 takes the best; others draw by their probabilities") {
  const Tensor scores = Tensor::of<float>({std::log(1.F), std::log(4.F), std::log(3.F), std::log(2.F)}, {4});
  CHECK(Sampler({.temperature = 0}).choose(scores) == 1);
  const auto shares = [&](const Sampling& sampling) {
    std::map<std::int64_t, double> share;
    Sampler sampler(sampling);
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) share[sampler.choose(scores)] += 1.0 / draws;
    return share;
  };
  // five deviations of a share: 5 sqrt(0.25 / 20000) = 0.018
  const auto check = [](std::map<std::int64_t, double> got, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(got[static_cast<std::int64_t>(i)] - expected[i]) <= (expected[i] > 0 ? 0.018 : 0));
  };
  check(shares({}), {0.1, 0.4, 0.3, 0.2});
  check(shares({.temperature = 0.5}), {1.0 / 30, 16.0 / 30, 9.0 / 30, 4.0 / 30});
  check(shares({.top_k = 2}), {0, 4.0 / 7, 3.0 / 7, 0});
  check(shares({.top_p = 0.65}), {0, 4.0 / 7, 3.0 / 7, 0});
  check(shares({.top_p = 0.75}), {0, 4.0 / 9, 3.0 / 9, 2.0 / 9});
  check(shares({.top_p = 0.01}), {0, 1, 0, 0});
  CHECK(Sampler({}).choose(scores, 1) == 0);  // only the first label
}

TEST_CASE("sampler: the same seed draws the same labels, and what does not fit is rejected") {
  const Tensor scores = Tensor::zeros(DType::f64, {1000});
  Sampler a({.seed = 7}), b({.seed = 7}), c({.seed = 8});
  std::vector<std::int64_t> from_a, from_b, from_c;
  for (int i = 0; i < 10; ++i) {
    from_a.push_back(a.choose(scores)), from_b.push_back(b.choose(scores)), from_c.push_back(c.choose(scores));
  }
  CHECK(from_a == from_b);
  CHECK(from_a != from_c);
  CHECK_ERROR_CONTAINS("temperature: expected a number of at least 0, got -1", Sampler({.temperature = -1}));
  CHECK_ERROR_CONTAINS("top_p: expected a number in (0, 1], got 0", Sampler({.top_p = 0}));
  CHECK_ERROR_CONTAINS("top_k: expected at least 1", Sampler({.top_k = -1}));
  CHECK_ERROR_CONTAINS("label 1 is NaN", a.choose(Tensor::of<float>({0, NAN}, {2})));
}

TEST_CASE("alphabet: characters by code point, with errors that name the line") {
  const Alphabet alphabet = Alphabet::of_text(
      "b\xC3\xA4"
      "a\n\xE2\x82\xAC"
      "b");
  CHECK(alphabet.characters() == std::vector<std::string>{"\n", "a", "b", "\xC3\xA4", "\xE2\x82\xAC"});
  const Tensor labels = alphabet.encode(
      "\xE2\x82\xAC"
      "a");
  REQUIRE(labels.shape() == Shape{2});
  CHECK(labels.data<std::int64_t>()[0] == 4);
  CHECK(labels.data<std::int64_t>()[1] == 1);
  CHECK_ERROR_CONTAINS("book:2: expected one of the 5 characters that the model knows, got 'c'", alphabet.encode("a\nc", "book"));
  CHECK_ERROR_CONTAINS("book:3: expected text in UTF-8, got the byte 0xe4", Alphabet::of_text("a\n\n\xE4"
                                                                                              "b",
                                                                                              "book"));
  CHECK_ERROR_CONTAINS("expected one character in UTF-8, got 'ab'", Alphabet({"ab"}));
  CHECK_ERROR_CONTAINS("'a' is given twice", Alphabet({"a", "a"}));
  for (const char* const wrong : {"\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x80"}) {
    CHECK_ERROR_CONTAINS("expected text in UTF-8", Alphabet::of_text(wrong));
  }
}

TEST_CASE_FIXTURE(InFolder, "generator: a model of characters that always follow each other learns and continues them") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abcde\n";
  folder.write("text.txt", text);
  folder.write("train.yaml", R"(
model: {input: {shape: [12], dtype: int64}, layers: [embedding: {rows: 8, dim: 8}, residual: {body: [attention: {heads: 2, causal: true, rotary: true}]}, dense: {units: 8}]}
data: {source: text, directory: text.txt, sequence: 12, test_split: 0.1}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: adam, learning_rate: 0.02}
metrics: [perplexity]
batch_size: 20
epochs: 12
seed: 1
verbose: 0
device: openblas
logging: {level: off}
checkpoint: {directory: run}
)");
  {
    TrainingRun run = TrainingRun::load(folder.file("train.yaml"));
    run.fit(run.load_data());
  }
  TextGenerator generator = TextGenerator::load(folder.file("run"));
  std::string streamed;
  const std::string more = generator.generate("bcd", 30, {.temperature = 0}, [&](const std::string& piece) {
    streamed += piece;
    return true;
  });
  CHECK(more == "e\nabcde\nabcde\nabcde\nabcde\nabcd");
  CHECK(streamed == more);
  CHECK(generator.generate("", 6, {.temperature = 0}) == "abcde\n");
  int pieces = 0;
  CHECK(generator.generate("a", 30, {}, [&](const std::string&) { return ++pieces < 3; }).size() == 3);
  CHECK_ERROR_CONTAINS("prompt:1: expected one of the 6 characters that the model knows, got 'x'", generator.generate("abx", 1));
}

}  // namespace
}  // namespace tenon::test
