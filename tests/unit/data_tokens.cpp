// SPDX-License-Identifier: Apache-2.0
// Text as tokens: vocabularies, sequences whose targets are shifted by one, and a generated language.
#include <doctest/doctest.h>

#include <map>

#include "data_testing.h"
#include "temporary_folder.h"

using namespace tenon;
using namespace tenon::test;
using Ids = std::vector<std::int64_t>;

TEST_CASE("vocabulary: the most frequent words, after <unk> and <eos>") {
  const std::string text = " the cat sat on the mat \n the dog sat <unk>\n";
  const Vocabulary all = Vocabulary::of_text(text, 100);
  CHECK(all.size() == 8);
  CHECK(all.word(0) == "<unk>");
  CHECK(all.word(1) == "<eos>");
  CHECK(all.word(2) == "the");
  CHECK(all.word(3) == "sat");
  CHECK(all.word(4) == "cat");  // the others are equally frequent and sorted by bytes
  CHECK(all.word(7) == "on");
  CHECK(all.id("mat") == 6);
  CHECK(all.id("bird") == Vocabulary::unknown);
  const Vocabulary few = Vocabulary::of_text(text, 4);
  CHECK(few.size() == 4);
  CHECK(values_of<std::int64_t>(few.encode("the cat sat\nsat")) == Ids{2, 0, 3, 1, 3});
  CHECK(few.encode("").count() == 0);
  CHECK_ERROR("vocabulary: id 4 is out of range, expected 0 to 3", few.word(4));
  CHECK_ERROR("vocabulary: expected a size of at least 3, including <unk> and <eos>, got 2", Vocabulary::of_text(text, 2));
  CHECK_ERROR("vocabulary: word '<eos>' is given twice", Vocabulary({"a", "<eos>"}));
}

TEST_CASE_FIXTURE(InFolder, "tokens: samples are consecutive, and targets are one token later") {
  const std::string path = folder.write("train.txt", "a b c\na b\nd\n");  // a b c <eos> a b <eos> d <eos>
  TokenOptions options{.sequence = 2};
  const TokenData tokens = load_tokens(path, options);
  CHECK(tokens.vocabulary->size() == 6);
  REQUIRE(tokens.data->size() == 4);
  CHECK(tokens.data->x_type().dtype == DType::i64);
  CHECK(tokens.data->x_type().shape == Shape{2});
  const auto [x, y] = gather(*tokens.data, {0, 1, 3});
  CHECK(values_of<std::int64_t>(x) == Ids{2, 3, 4, 1, 1, 5});
  CHECK(values_of<std::int64_t>(y) == Ids{3, 4, 1, 2, 5, 1});
  // Another text with the same vocabulary.
  options.words = tokens.vocabulary;
  const TokenData test = load_tokens(folder.write("test.txt", "d e\nb"), options);
  CHECK(values_of<std::int64_t>(test.data->x()) == Ids{5, 0});
  CHECK(values_of<std::int64_t>(test.data->y()) == Ids{0, 1});
}

TEST_CASE_FIXTURE(InFolder, "tokens: errors are reported") {
  TokenOptions options{.sequence = 3};
  const std::string path = folder.write("a.txt", "a b\n");
  CHECK_ERROR(path + ": expected at least 4 tokens, a sequence of 3 and the next token, got 3", load_tokens(path, options));
  options.sequence = 0;
  CHECK_ERROR(path + ": expected a sequence of at least 1 token, got 0", load_tokens(path, options));
  const std::string binary = folder.write("b.txt", std::string("a b\nc \0 d\n", 10));
  CHECK_ERROR(binary + ":2: expected text, got a zero byte", load_tokens(binary));
  CHECK_ERROR(folder.file("c.txt") + ": file not found", load_tokens(folder.file("c.txt")));
}

TEST_CASE("tokens: the generated language is reproducible, skewed and learnable") {
  TokenStreamOptions options{.count = 35 * 2000 + 1, .vocabulary = 1000};
  const auto data = generate_tokens(options);
  CHECK(data->size() == 2000);
  CHECK(equal(data->x(), generate_tokens(options)->x()));
  std::map<std::int64_t, std::int64_t> counts;
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> pairs;
  const auto *x = data->x().data<std::int64_t>(), *y = data->y().data<std::int64_t>();
  const std::int64_t total = data->x().count();
  for (std::int64_t i = 0; i < total; ++i) {
    CHECK_MESSAGE((x[i] >= 1 && x[i] < 1000), x[i]);
    ++counts[x[i]];
    ++pairs[x[i]][y[i]];
  }
  // Prediction from the last word is far better than prediction from word frequencies.
  std::int64_t by_pair = 0, by_count = 0;
  for (const auto& [word, followers] : pairs) {
    std::int64_t best = 0;
    for (const auto& [next, count] : followers) best = std::max(best, count);
    by_pair += best;
  }
  for (const auto& [word, count] : counts) by_count = std::max(by_count, count);
  CHECK(by_pair > total / 4);
  CHECK(by_count < total / 8);
  CHECK(counts[Vocabulary::end_of_sentence] > total / 40);
  options.split = Split::test;
  CHECK_FALSE(equal(data->x(), generate_tokens(options)->x()));
  options.vocabulary = 2;
  CHECK_ERROR("tokens test: expected a vocabulary of 3 to 2^31 words, got 2", generate_tokens(options));
}

TEST_CASE("random: any shape, reproducible bytes, different splits") {
  RandomOptions options{.count = 20, .shape = {3, 5, 7}, .classes = 4};
  const auto data = generate_random(options);
  CHECK(data->x().str() == "u8(20,3,5,7)");
  CHECK(data->num_classes() == 4);
  CHECK(equal(data->x(), generate_random(options)->x()));
  std::vector<int> seen(4);
  for (const std::int64_t label : values_of<std::int64_t>(data->y())) ++seen[static_cast<std::size_t>(label)];
  for (const int count : seen) CHECK(count > 0);
  double sum = 0;
  for (const std::uint8_t byte : values_of<std::uint8_t>(data->x())) sum += byte;
  CHECK(sum / 2100 == doctest::Approx(127.5).epsilon(0.05));
  options.split = Split::test;
  CHECK_FALSE(equal(data->x(), generate_random(options)->x()));
  options.classes = 0;
  CHECK_ERROR("random: expected 1 to 2^31 classes, got 0", generate_random(options));
}
