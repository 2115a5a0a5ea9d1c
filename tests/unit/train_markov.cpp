// SPDX-License-Identifier: Apache-2.0
// A language model on a stream of known entropy rate: its perplexity approaches that bound and does not go below it.
#include <cmath>
#include <string_view>

#include "config/model_yaml.h"
#include "testing.h"

namespace tenon::test {
namespace {

constexpr std::int64_t symbols = 8, sequence = 8;

MarkovStream stream_of(Split split, std::int64_t samples) {
  return generate_markov({.count = samples * sequence + 1, .symbols = symbols, .sequence = sequence, .split = split});
}

}  // namespace

TEST_CASE_FIXTURE(OnOpenblas, "markov: a recurrent model's perplexity approaches the bound of the entropy rate") {
  for (const char* cell : {"lstm", "gru", "rnn"}) {
    CAPTURE(cell);
    if (small_sizes() && std::string_view(cell) != "gru") continue;
    Model model(config::model_from_text(std::string("input: {shape: [8], dtype: int64}\nlayers:\n  - embedding: {rows: 8, dim: 8}\n  - ") +
                                        cell + ": {units: 16, return_sequences: true}\n  - dense: {units: 8}\n"));
    model.compile(context, {.optimizer = {.learning_rate = 0.01},
                            .loss = {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true},
                            .metrics = {Metric::perplexity}});
    const MarkovStream train = stream_of(Split::train, 2000), test = stream_of(Split::test, 1000);
    model.fit(train.data, {.batch_size = 50, .epochs = 4});
    const Logs logs = model.evaluate(test.data, 200);
    REQUIRE(logs.back().first == "perplexity");
    const double perplexity = logs.back().second;
    CHECK(perplexity < 1.05 * std::exp(train.entropy_rate));
    CHECK(perplexity > 0.97 * std::exp(train.entropy_rate));  // the sampling error of 8000 symbols
  }
}

}  // namespace tenon::test
