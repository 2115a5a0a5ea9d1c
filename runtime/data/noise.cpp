// SPDX-License-Identifier: Apache-2.0
// data/noise.cpp - random images with random labels.
#include <tenon/sdk/random.h>

#include <cstring>

#include <tenon/data.h>

#include "data/draw.h"
#include "data/generated.h"
#include "data/streams.h"

namespace tenon {

std::shared_ptr<const ArrayDataset> generate_random(const RandomOptions& options) {
  data::check_count("random", options.count);
  if (options.shape.rank() < 1 || options.shape.rank() > 7 || options.shape.count() < 1)
    throw Error("random: expected non-empty samples of 1 to 7 dimensions, got " + options.shape.str());
  if (options.classes < 1 || options.classes > std::int64_t{1} << 31)
    throw Error("random: expected 1 to 2^31 classes, got " + std::to_string(options.classes));
  Tensor x = Tensor::empty(DType::u8, options.shape.with_batch(options.count));
  Tensor y = Tensor::empty(DType::i64, {options.count});
  const std::uint32_t stream = data::stream_of_random + static_cast<std::uint32_t>(options.split);
  const std::int64_t bytes = options.shape.count();
  for (std::int64_t i = 0; i < options.count; ++i) {
    const sdk::random::Source source{options.seed, static_cast<std::uint64_t>(i), stream};
    auto* image = x.data<std::uint8_t>() + i * bytes;
    for (std::int64_t at = 0; at < bytes; at += 16) {  // a block of random bits is 16 bytes
      const sdk::random::Lanes lanes = sdk::random::lanes_of(source, at / 16 + 1);
      std::memcpy(image + at, lanes.x, static_cast<std::size_t>(std::min<std::int64_t>(16, bytes - at)));
    }
    y.data<std::int64_t>()[i] = data::Draw(options.seed, i, stream).below(options.classes);  // from block 0
  }
  ArrayOptions array;
  array.name = std::string("random ") + name_of(options.split);
  array.scaling = options.scaling;
  array.targets = options.targets;
  array.num_classes = options.classes;
  return std::make_shared<const ArrayDataset>(x, y, array);
}

}  // namespace tenon
