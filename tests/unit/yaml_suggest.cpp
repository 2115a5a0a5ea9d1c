// SPDX-License-Identifier: Apache-2.0
#include "yaml/suggest.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using tenon::yaml::did_you_mean;
using tenon::yaml::edit_distance;
using tenon::yaml::suggest;

TEST_CASE("suggest: the distance counts insertions, deletions, substitutions and swaps, whatever the letter case") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("units", "unit") == 1);
  CHECK(edit_distance("units", "unats") == 1);
  CHECK(edit_distance("untis", "units") == 1);
  CHECK(edit_distance("Relu", "relu") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ca", "abc") == 3);  // optimal string alignment: no edit inside a swap
}

TEST_CASE("suggest: a typo finds its word, an unrelated word finds none") {
  const std::vector<std::string> words = {"precision", "placement", "device", "seed", "use"};
  CHECK(suggest("precison", words) == "precision");
  CHECK(suggest("plcaement", words) == "placement");
  CHECK(suggest("Device", words) == "device");
  CHECK(suggest("sede", words) == "seed");
  CHECK(suggest("banana", words) == "");
  CHECK(suggest("abc", words) == "");
  CHECK(suggest("place", words) == "placement");  // a prefix
  CHECK(suggest("pl", words) == "");
  CHECK(suggest("", words) == "");
  CHECK(suggest(std::string(1000, 'x'), words) == "");
}

TEST_CASE("suggest: of equally close words the first wins; the suffix of a message is formatted") {
  const std::vector<std::string> words = {"beta1", "beta2"};
  CHECK(suggest("beta", words) == "beta1");
  CHECK(did_you_mean("beta3", words) == "; did you mean 'beta1'?");
  CHECK(did_you_mean("momentum", words) == "");
}

TEST_CASE("suggest: a word in another spelling, and a name of Keras or PyTorch, mean ours rather than one with similar letters") {
  const std::vector<std::string> losses = {"binary_crossentropy", "sparse_categorical_crossentropy"};
  CHECK(suggest("sparse_crossentropy", losses) == "sparse_categorical_crossentropy");
  CHECK(suggest("SparseCategoricalCrossentropy", losses) == "sparse_categorical_crossentropy");
  CHECK(suggest("leakyrelu", std::vector<std::string>{"relu6", "leaky_relu"}) == "leaky_relu");
  CHECK(suggest("num_heads", std::vector<std::string>{"heads", "causal"}) == "heads");
  CHECK(suggest("use_bias", std::vector<std::string>{"units", "bias"}) == "bias");
  CHECK(suggest("lr", std::vector<std::string>{"name", "learning_rate"}) == "learning_rate");
  CHECK(suggest("lr", std::vector<std::string>{"units"}) == "");
}
