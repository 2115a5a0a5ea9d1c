// SPDX-License-Identifier: Apache-2.0
// A language model on a stream of known entropy rate: its perplexity approaches that bound and does not go below it.
#include <cmath>

#include "config/model_yaml.h"
#include "exec_testing.h"

namespace tenon {
namespace {

using test::test_config;

constexpr std::int64_t symbols = 8, sequence = 8;

MarkovStream stream_of(Split split, std::int64_t samples) {
  MarkovOptions options;
  options.symbols = symbols;
  options.sequence = sequence;
  options.count = samples * sequence + 1;
  options.split = split;
  return generate_markov(options);
}

}  // namespace

TEST_CASE("markov: a recurrent model's perplexity approaches the bound of the entropy rate") {
  const Context context(test_config("openblas:0"));
  for (const char* cell : {"lstm", "gru", "rnn"}) {
    CAPTURE(cell);
    Model model(config::model_from_text(std::string("input: {shape: [8], dtype: int64}\nlayers:\n  - embedding: {rows: 8, dim: 8}\n  - ") +
                                        cell + ": {units: 16, return_sequences: true}\n  - dense: {units: 8}\n"));
    CompileOptions options;
    options.loss.loss = Loss::sparse_categorical_crossentropy;
    options.loss.from_logits = true;
    options.optimizer.learning_rate = 0.01;
    options.metrics = {Metric::perplexity};
    model.compile(context, options);
    const MarkovStream train = stream_of(Split::train, 2000), test = stream_of(Split::test, 1000);
    model.fit(train.data, {.batch_size = 50, .epochs = 4});
    const Logs logs = model.evaluate(test.data, 200);
    REQUIRE(logs.back().first == "perplexity");
    const double perplexity = logs.back().second;
    CHECK(perplexity < 1.05 * std::exp(train.entropy_rate));
    CHECK(perplexity > 0.97 * std::exp(train.entropy_rate));  // the sampling error of 8000 symbols
  }
}

}  // namespace tenon
