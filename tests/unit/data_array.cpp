// SPDX-License-Identifier: Apache-2.0
// Data sets in memory: scaling, targets, slices, and mismatched batches.
#include <doctest/doctest.h>

#include <tenon/data.h>

#include "data_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const Tensor bytes = Tensor::of<std::uint8_t>({0, 51, 102, 153, 204, 255}, {3, 2});
const Tensor labels = Tensor::of<std::uint8_t>({2, 0, 1}, {3});

ArrayOptions options_of(Scaling scaling) {
  ArrayOptions options;
  options.name = "little";
  options.scaling = scaling;
  options.num_classes = 3;
  return options;
}

/// The error of making a data set.
std::string refusal_of(const Tensor& x, const Tensor& y, const ArrayOptions& options) {
  return message_of([&] { const ArrayDataset data(x, y, options); });
}

}  // namespace

TEST_CASE("array: bytes are scaled to [0, 1], in the requested order") {
  const ArrayDataset data(bytes, labels, options_of(Scaling::unit()));
  CHECK(data.size() == 3);
  CHECK(data.x_type().shape == Shape{2});
  CHECK(data.num_classes() == 3);
  const auto [x, y] = gather(data, {2, 0, 2});
  CHECK(x.shape() == Shape{3, 2});
  const auto values = values_of<float>(x);
  const std::vector<float> expected = {0.8f, 1.0f, 0.0f, 0.2f, 0.8f, 1.0f};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  CHECK(values[1] == 1.0f);  // exactly: 255 is white
  CHECK(values_of<std::int64_t>(y) == std::vector<std::int64_t>{1, 2, 1});
}

TEST_CASE("array: Gorgonia and standard scaling follow their formulas") {
  const auto gorgonia = values_of<float>(gather(ArrayDataset(bytes, labels, options_of(Scaling::gorgonia())), {0, 2}).x);
  CHECK(gorgonia[0] == 0.1f);
  CHECK(gorgonia[1] == doctest::Approx(51.0 / 255 * 0.9 + 0.1));
  CHECK(gorgonia[3] == doctest::Approx(1.0));
  const auto standard = values_of<float>(gather(ArrayDataset(bytes, labels, options_of(Scaling::standard(0.1307, 0.3081))), {0, 2}).x);
  CHECK(standard[0] == doctest::Approx(-0.1307 / 0.3081));
  CHECK(standard[3] == doctest::Approx((1 - 0.1307) / 0.3081));
  CHECK_ERROR("Scaling::standard: expected a deviation above 0, got 0.000000", Scaling::standard(0, 0));
}

TEST_CASE("array: f64 results are scaled in f64, and f32 without scaling is copied") {
  ArrayOptions options = options_of(Scaling::unit());
  options.x_dtype = DType::f64;
  CHECK(values_of<double>(gather(ArrayDataset(bytes, labels, options), {0}).x)[1] == 51 * (1.0 / 255));
  const Tensor x = Tensor::of<float>({1.5f, -2.5f}, {2, 1});
  CHECK(values_of<float>(gather(ArrayDataset(x, x), {1, 0}).x) == std::vector<float>{-2.5f, 1.5f});
}

TEST_CASE("array: other dtypes are not scaled") {
  ArrayOptions options;
  options.name = "tokens";
  options.x_dtype = DType::i64;
  const Tensor tokens = Tensor::of<std::int64_t>({5, 6, 7, 8}, {2, 2});
  CHECK(values_of<std::int64_t>(gather(ArrayDataset(tokens, tokens, options), {1}).x) == std::vector<std::int64_t>{7, 8});
  options.scaling = Scaling::unit();
  CHECK(refusal_of(tokens, tokens, options) ==
        "tokens: x i64(2,2) does not scale to i64; expected u8, f32 or f64 scaled to f32 or f64, or unscaled x_dtype i64");
}

TEST_CASE("array: targets become hard or soft one-hot vectors") {
  ArrayOptions options = options_of(Scaling::unit());
  options.targets = Targets::one_hot;
  const Gathered hard = gather(ArrayDataset(bytes, labels, options), {0, 1});
  CHECK(hard.y.shape() == Shape{2, 3});
  CHECK(values_of<float>(hard.y) == std::vector<float>{0, 0, 1, 1, 0, 0});
  options.targets = Targets::soft_one_hot;
  CHECK(values_of<float>(gather(ArrayDataset(bytes, labels, options), {2}).y) == std::vector<float>{0.1f, 0.9f, 0.1f});
  options.num_classes.reset();
  CHECK(refusal_of(bytes, labels, options) == "little: one-hot targets require num_classes; set it");
}

TEST_CASE("array: without classes y is unchanged") {
  const Tensor y = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  CHECK(values_of<float>(gather(ArrayDataset(bytes, y), {2}).y) == std::vector<float>{5, 6});
  CHECK_FALSE(ArrayDataset(bytes, y).num_classes().has_value());
}

TEST_CASE("array: a label out of range is reported with its index") {
  ArrayOptions options = options_of(Scaling::unit());
  options.num_classes = 2;
  CHECK(refusal_of(bytes, labels, options) == "little: label 2 of sample 0 is out of range, expected 0 to 1; num_classes sets the range");
  CHECK(refusal_of(bytes, Tensor::of<std::int32_t>({0, 1, -1}, {3}), options) ==
        "little: label -1 of sample 2 is out of range, expected 0 to 1; num_classes sets the range");
}

TEST_CASE("array: mismatched samples and targets are reported") {
  ArrayOptions options = options_of(Scaling::unit());
  CHECK(refusal_of(bytes, Tensor::zeros(DType::u8, {4}), options) ==
        "little: expected as many targets as samples, got x u8(3,2) and y u8(4)");
  CHECK(refusal_of(bytes, Tensor::scalar(1.0f), options) == "little: expected as many targets as samples, got x u8(3,2) and y f32()");
  CHECK(refusal_of(bytes, Tensor(), options) == "little: expected y, got an undefined tensor");
  CHECK(refusal_of(bytes, Tensor::zeros(DType::f32, {3}), options) == "little: expected integers as labels, got f32(3)");
  CHECK(refusal_of(bytes, Tensor::zeros(DType::u8, {3, 1}), options) == "little: expected one label per sample, got u8(3,1)");
  options.num_classes = 0;
  CHECK(refusal_of(bytes, labels, options) == "little: expected num_classes of at least 1, got 0");
}

TEST_CASE("array: a strided x is made dense once") {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2}).transpose({1, 0});
  CHECK(values_of<float>(gather(ArrayDataset(x, x), {0}).x) == std::vector<float>{1, 3});
}

TEST_CASE("array: a slice is a separate data set over the same memory") {
  const ArrayDataset data(bytes, labels, options_of(Scaling::unit()));
  const ArrayDataset part = data.slice(1, 3, "part");
  CHECK(part.size() == 2);
  CHECK(part.name() == "part");
  CHECK(part.x().address() == data.x().address() + 2);
  CHECK(values_of<std::int64_t>(gather(part, {0, 1}).y) == std::vector<std::int64_t>{0, 1});
  CHECK_ERROR("little: slice: expected 0 <= begin <= end <= 3, got [2, 4)", data.slice(2, 4, "x"));
}

TEST_CASE("array: several inputs and targets keep their names, order and dtypes") {
  const Tensor ids = Tensor::of<std::int64_t>({5, 6, 7, 8, 9, 10}, {3, 2}), prices = Tensor::of<float>({0.5F, 1.5F, 2.5F}, {3, 1});
  ArrayOptions options{.name = "several"};
  options.sample_weights = Tensor::of<float>({1, 2, 3}, {3});
  const ArrayDataset whole({{"pixels", bytes}, {"ids", ids}}, {{"price", prices}, {"label", labels}}, options);
  const ArrayDataset data = whole.slice(1, 3, "part");
  REQUIRE(data.inputs().size() == 2);
  CHECK(data.inputs()[0].dtype == DType::u8);
  CHECK(data.inputs()[1].name == "ids");
  CHECK(data.targets()[0].shape == Shape{1});
  CHECK(data.targets()[1].name == "label");
  CHECK(data.is_unscaled());
  std::vector<Tensor> inputs{Tensor::zeros(DType::u8, {2, 2}), Tensor::zeros(DType::i64, {2, 2})};
  std::vector<Tensor> targets{Tensor::zeros(DType::f32, {2, 1}), Tensor::zeros(DType::u8, {2})};
  const std::vector<std::int64_t> order{1, 0};
  data.gather(order, inputs, targets);
  CHECK(values_of<std::uint8_t>(inputs[0]) == std::vector<std::uint8_t>{204, 255, 102, 153});
  CHECK(values_of<std::int64_t>(inputs[1]) == std::vector<std::int64_t>{9, 10, 7, 8});
  CHECK(values_of<float>(targets[0]) == std::vector<float>{2.5F, 1.5F});
  CHECK(values_of<std::uint8_t>(targets[1]) == std::vector<std::uint8_t>{1, 0});
  CHECK_ERROR("part: gather: expected 2 inputs, got 1", data.gather(order, {inputs.data(), 1}, targets));

  const auto refusal = [&](const std::vector<NamedTensor>& x, const std::vector<NamedTensor>& y, const ArrayOptions& with) {
    return message_of([&] { const ArrayDataset refused(x, y, with); });
  };
  CHECK(refusal({{"a", ids}, {"a", ids}}, {{"y", prices}}, {}) == "data set: the input 'a' is given twice");
  CHECK(refusal({{"a", ids}, {"", ids}}, {{"y", prices}}, {}) == "data set: expected a name for each input, got an empty one");
  CHECK(refusal({{"a", bytes}}, {}, {}) == "data set: expected at least one target, got none");
  CHECK(refusal({{"a", ids}, {"b", ids.slice(0, 0, 2)}}, {{"y", prices}}, {}) ==
        "array: expected as many inputs as samples, got a i64(3,2) and b i64(2,2)");
  CHECK(refusal({{"a", ids}, {"b", ids}}, {{"y", prices}}, {.scaling = Scaling::unit()}) ==
        "array: expected one input for a scaling, got 2");
  CHECK(refusal({{"a", ids}, {"b", ids}}, {{"y", labels}, {"z", labels}}, {.num_classes = 3}) ==
        "array: expected one target for num_classes and one-hot targets, got 2");
  CHECK_ERROR("several: reconstruct: expected one input, got 2", reconstruct(std::make_shared<ArrayDataset>(whole)));
  CHECK_ERROR("several: augment: expected one input, got 2", augment(std::make_shared<ArrayDataset>(whole), {.crop_padding = 1}));
}

TEST_CASE("array: batches, caches and parts of several inputs and targets are those of the samples") {
  const Tensor ids = Tensor::of<std::int64_t>({0, 1, 2, 3, 4}, {5}), more = Tensor::of<float>({0, 10, 20, 30, 40}, {5, 1});
  const auto data = std::make_shared<ArrayDataset>(std::vector<NamedTensor>{{"ids", ids}, {"more", more}},
                                                   std::vector<NamedTensor>{{"y", more}, {"z", ids}});
  for (const std::shared_ptr<const Dataset>& set : {std::shared_ptr<const Dataset>(data), cache_in_memory(data)}) {
    for (const int workers : {0, 2}) {
      Batches batches(set, {.batch_size = 2, .seed = 3, .workers = workers});
      for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
        batches.start(epoch);
        std::int64_t seen = 0;
        while (const Batch* batch = batches.next()) {
          for (std::size_t i = 0; i < batch->indices.size(); ++i, ++seen) {
            const std::int64_t index = batch->indices[i];
            CHECK(batch->x().data<std::int64_t>()[i] == index);
            CHECK(batch->inputs[1].data<float>()[i] == static_cast<float>(10 * index));
            CHECK(batch->targets[0].data<float>()[i] == static_cast<float>(10 * index));
            CHECK(batch->targets[1].data<std::int64_t>()[i] == index);
          }
        }
        CHECK(seen == 5);
      }
    }
  }
}

TEST_CASE("array: a mismatched batch is reported") {
  const ArrayDataset data(bytes, labels, options_of(Scaling::unit()));
  Tensor x = Tensor::zeros(DType::f32, {2, 2}), y = Tensor::zeros(DType::i64, {2});
  const std::vector<std::int64_t> good = {0, 1}, beyond = {0, 3}, negative = {-1, 0};
  CHECK_NOTHROW(data.gather(good, x, y));
  CHECK_ERROR("little: gather: indices[1] is 3, expected 0 to 2", data.gather(beyond, x, y));
  CHECK_ERROR("little: gather: indices[0] is -1, expected 0 to 2", data.gather(negative, x, y));
  Tensor wide = Tensor::zeros(DType::f32, {2, 3}), doubles = Tensor::zeros(DType::f64, {2, 2}), none;
  CHECK_ERROR("little: gather: expected x as dense f32(2,2) in host memory, got f32(2,3)", data.gather(good, wide, y));
  CHECK_ERROR("little: gather: expected x as dense f32(2,2) in host memory, got f64(2,2)", data.gather(good, doubles, y));
  CHECK_ERROR("little: gather: expected x as dense f32(2,2) in host memory, got an undefined tensor", data.gather(good, none, y));
  Tensor turned = Tensor::zeros(DType::f32, {2, 2}).transpose({1, 0});
  CHECK_ERROR("little: gather: expected x as dense f32(2,2) in host memory, got f32(2,2), strided", data.gather(good, turned, y));
  Tensor short_y = Tensor::zeros(DType::i64, {1});
  CHECK_ERROR("little: gather: expected y as dense i64(2) in host memory, got i64(1)", data.gather(good, x, short_y));
}
