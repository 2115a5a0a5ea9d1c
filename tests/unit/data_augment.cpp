// SPDX-License-Identifier: Apache-2.0
// Crops and flips: their effect on an image; they depend only on (seed, epoch, index) and apply only to training.
#include <doctest/doctest.h>
#include <tenon/sdk/random.h>

#include <algorithm>
#include <set>

#include "data_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// `count` images u8(2,4,5); pixel (c, y, x) of image i is 1 + i + 100 c + 10 y + 2 x, never 0.
std::shared_ptr<const ArrayDataset> images(std::int64_t count, DType x_dtype = DType::f32) {
  Tensor x = Tensor::empty(DType::u8, {count, 2, 4, 5});
  auto* at = x.data<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i)
    for (int c = 0; c < 2; ++c)
      for (int row = 0; row < 4; ++row)
        for (int column = 0; column < 5; ++column) *at++ = static_cast<std::uint8_t>(1 + i % 2 + 100 * c + 10 * row + 2 * column);
  ArrayOptions options;
  options.name = "little";
  options.x_dtype = x_dtype;
  return std::make_shared<ArrayDataset>(x, Tensor::zeros(DType::i64, {count}), options);
}

AugmentOptions options_of(std::int64_t padding, bool across = false, bool over = false) {
  return {.crop_padding = padding, .flip_horizontal = across, .flip_vertical = over, .fill = {7, 8}, .seed = 3};
}

/// The image after a window (down, right) and then flips, by definition, pixel by pixel.
std::vector<float> changed(const std::vector<float>& image, int down, int right, bool across, bool over) {
  std::vector<float> result;
  for (int c = 0; c < 2; ++c)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) {
        const int from_y = (over ? 3 - y : y) + down, from_x = (across ? 4 - x : x) + right;
        const bool inside = from_y >= 0 && from_y < 4 && from_x >= 0 && from_x < 5;
        result.push_back(inside ? image[static_cast<std::size_t>(20 * c + 5 * from_y + from_x)] : c == 0 ? 7.0f : 8.0f);
      }
  return result;
}

}  // namespace

TEST_CASE("augment: each image is one of the possible windows and flips, and each of them occurs") {
  const auto data = images(1);
  const auto augmented = augment(data, options_of(2, true, true));
  const std::vector<float> image = values_of<float>(gather(*data, {0}).x);
  std::set<std::vector<float>> possible, seen;
  for (int down = -2; down <= 2; ++down)
    for (int right = -2; right <= 2; ++right)
      for (const bool across : {false, true})
        for (const bool over : {false, true}) possible.insert(changed(image, down, right, across, over));
  REQUIRE(possible.size() == 100);
  for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
    const std::vector<float> made = values_of<float>(gather_augmented(*augmented, {0}, epoch).x);
    REQUIRE(possible.count(made) == 1);
    seen.insert(made);
  }
  CHECK(seen.size() == 100);
}

TEST_CASE("augment: without crop or flip that change does not happen") {
  const auto data = images(1);
  const std::vector<float> image = values_of<float>(gather(*data, {0}).x);
  int flipped = 0;
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    const auto made = values_of<float>(gather_augmented(*augment(data, options_of(0, true)), {0}, epoch).x);
    CHECK((made == image || made == changed(image, 0, 0, true, false)));
    flipped += made != image;
  }
  CHECK(flipped > 70);
  CHECK(flipped < 130);
  CHECK(augment(data, options_of(0)) == data);
}

TEST_CASE("augment: the random bits are those of Philox as the header specifies") {
  const auto data = images(40);
  const auto augmented = augment(data, options_of(2, true, true));
  for (const std::uint32_t index : {0u, 17u, 39u}) {
    for (const std::uint32_t epoch : {0u, 5u}) {
      const auto lanes = sdk::random::philox({{index, 0, 0xDA7A0050u, epoch}}, {{3, 0}});
      const auto place = [](std::uint32_t lane) { return static_cast<int>(std::uint64_t{lane} * 5 >> 32) - 2; };
      const std::vector<float> image = values_of<float>(gather(*data, {index}).x);
      CHECK(values_of<float>(gather_augmented(*augmented, {index}, epoch).x) ==
            changed(image, place(lanes.x[0]), place(lanes.x[1]), lanes.x[2] >> 31 != 0, lanes.x[3] >> 31 != 0));
    }
  }
}

TEST_CASE("augment: a sample's changes do not depend on the batch or its position in it") {
  const auto augmented = augment(images(20), options_of(1, true));
  const Tensor all = gather_augmented(*augmented, {4, 9, 17}, 2).x;
  for (const std::int64_t row : {0, 1, 2}) {
    const std::int64_t index = std::vector<std::int64_t>{4, 9, 17}[static_cast<std::size_t>(row)];
    CHECK(equal(gather_augmented(*augmented, {index}, 2).x, all.slice(0, row, row + 1)));
  }
}

TEST_CASE("augment: gather without an epoch changes nothing; other dtypes and ranks work alike") {
  const auto data = images(3);
  const auto augmented = augment(data, options_of(2, true, true));
  CHECK(equal(gather(*augmented, {0, 1, 2}).x, gather(*data, {0, 1, 2}).x));
  CHECK(augmented->name() == "little");
  CHECK(augmented->x_type().shape == Shape{2, 4, 5});
  const auto bytes = augment(images(3, DType::u8), options_of(2, true, true));
  const auto doubles = augment(images(3, DType::f64), options_of(2, true, true));
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    const auto expected = values_of<float>(gather_augmented(*augmented, {0, 1, 2}, epoch).x);
    const auto as_bytes = values_of<std::uint8_t>(gather_augmented(*bytes, {0, 1, 2}, epoch).x);
    const auto as_doubles = values_of<double>(gather_augmented(*doubles, {0, 1, 2}, epoch).x);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(static_cast<float>(as_bytes[i]) == expected[i]);
      REQUIRE(static_cast<float>(as_doubles[i]) == expected[i]);
    }
  }
  const Tensor grey = Tensor::of<float>({1, 2, 3, 4}, {1, 2, 2});
  AugmentOptions options = options_of(1);
  options.fill = {0};
  CHECK_NOTHROW(gather_augmented(*augment(std::make_shared<ArrayDataset>(grey, Tensor::zeros(DType::i64, {1})), options), {0}, 0));
}

TEST_CASE("augment: batches of training are augmented, the same for any number of workers; others are not") {
  const auto augmented = augment(images(37), options_of(2, true, true));
  const auto run = [&](int workers, bool training) {
    Batches batches(augmented, {.batch_size = 5, .seed = 1, .workers = workers, .prefetch = 3, .augment = training});
    std::vector<float> values;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      batches.start(epoch);
      while (const Batch* batch = batches.next()) {
        const auto more = values_of<float>(batch->x());
        values.insert(values.end(), more.begin(), more.end());
      }
    }
    return values;
  };
  const std::vector<float> without_workers = run(0, true);
  for (const int workers : {1, 2, 4}) CHECK(run(workers, true) == without_workers);
  const std::vector<float> plain = run(2, false);
  CHECK(plain != without_workers);
  CHECK(std::count(plain.begin(), plain.end(), 7.0f) < std::count(without_workers.begin(), without_workers.end(), 7.0f));
}

TEST_CASE("augment: unsupported samples are reported") {
  const auto data = images(1);
  CHECK_ERROR("little: augment: expected a padding of 0 to 3, less than the sides of (2,4,5), got 4", augment(data, options_of(4)));
  CHECK_ERROR("little: augment: expected a padding of 0 to 3, less than the sides of (2,4,5), got -1", augment(data, options_of(-1)));
  AugmentOptions options = options_of(1);
  options.fill = {1, 2, 3};
  CHECK_ERROR("little: augment: expected one fill, or 2 for (2,4,5), got 3", augment(data, options));
  const auto table = std::make_shared<ArrayDataset>(Tensor::zeros(DType::f32, {2, 3}), Tensor::zeros(DType::i64, {2}));
  CHECK_ERROR("array: augment: expected images (C,H,W) or (H,W), got samples f32(3)", augment(table, options_of(1)));
  CHECK_ERROR("augment: expected a data set, got none", augment(nullptr, options_of(1)));
}
