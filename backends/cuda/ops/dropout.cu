// SPDX-License-Identifier: Apache-2.0
// Dropout, forward and, applied to dy with the same key and stream, backward.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

#include <type_traits>

#include "kernel/divisor.h"
#include "kernel/half.cuh"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

namespace random = sdk::random;

constexpr int per_block = 4;  ///< elements per block of random bits

/// The type in which T is scaled.
template <class T>
using Scale = std::conditional_t<is_narrow<T>, float, T>;

/// The parameters shared by all elements.
template <class T>
struct Chance {
  std::uint32_t consumer;
  std::uint64_t threshold;
  Scale<T> scale;

  __device__ T keep_or_drop(const random::Lanes& lanes, std::int64_t lane, T x) const {
    if (random::bernoulli(lanes, lane, threshold)) return T{};
    if constexpr (is_narrow<T>) {
      return from_float<T>(to_float(x) * scale);
    } else {
      return x * scale;
    }
  }
};

/// y may be x: each thread reads before it writes. `packs`: both are aligned for four elements at once.
template <class T>
__global__ void drop(const std::uint64_t* key, Chance<T> chance, bool packs, std::int64_t count, const T* x, T* y) {
  const random::Source source{key[0], key[1], chance.consumer};
  for (std::int64_t b = thread_index(); b * per_block < count; b += thread_count()) {
    const random::Lanes lanes = random::lanes_of(source, b);
    const std::int64_t first = b * per_block;
    if (packs && first + per_block <= count) {
      Pack<T, per_block> kept = pack_at<per_block>(x + b * per_block);
      for (int j = 0; j < per_block; ++j) kept.at[j] = chance.keep_or_drop(lanes, j, kept.at[j]);
      store_pack<per_block>(y + b * per_block, kept);
    } else {
      for (int j = 0; j < per_block && first + j < count; ++j) y[first + j] = chance.keep_or_drop(lanes, j, x[first + j]);
    }
  }
}

/// Lane k, chosen by comparisons: an index that is not a constant would put the lanes in local memory.
__device__ random::Lanes lane_alone(const random::Lanes& lanes, std::int64_t k) {
  return {{k == 0 ? lanes.x[0] : k == 1 ? lanes.x[1] : k == 2 ? lanes.x[2] : lanes.x[3]}};
}

/// The same for (images, pixels, channels), whose elements are indexed as (images, channels, pixels). A thread takes one channel of
/// `per_block` pixels, which need one or two blocks of random bits, and neighbouring threads read neighbouring elements.
template <class T>
__global__ void drop_channels_last(const std::uint64_t* key, Chance<T> chance, std::int64_t images, std::int64_t pixels,
                                   std::int64_t channels, Divisor by_channels, Divisor by_groups, const T* x, T* y) {
  const random::Source source{key[0], key[1], chance.consumer};
  const std::int64_t groups = (pixels + per_block - 1) / per_block;
  for (std::int64_t i = thread_index(); i < images * groups * channels; i += thread_count()) {
    const std::int64_t line = by_channels.quotient(i), c = i - line * channels;
    const std::int64_t n = by_groups.quotient(line), group = line - n * groups;
    const std::int64_t first = group * per_block;
    const std::int64_t position = (n * channels + c) * pixels + first;  // of the first pixel
    std::int64_t block = position / per_block;
    random::Lanes lanes = random::lanes_of(source, block);
    for (int j = 0; j < per_block && first + j < pixels; ++j) {
      if ((position + j) / per_block != block) lanes = random::lanes_of(source, ++block);
      const std::int64_t at = (n * pixels + first + j) * channels + c;
      y[at] = chance.keep_or_drop(lane_alone(lanes, (position + j) % per_block), 0, x[at]);
    }
  }
}

/// y = 0 with probability p, else x / (1 - p); p = 0 is the identity.
///
/// Shapes      x, y of one shape, y may be x; key is u64[2] = (seed, step), read at execution.
/// Attributes  stream; a: p in [0, 1).
/// Source      Srivastava et al.: Dropout (2014), in the inverted form, which needs no scaling at inference. Bits: <tenon/sdk/random.h>.
template <class T>
void dropout(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  const Chance<T> chance{attributes.stream, random::bernoulli_threshold(attributes.a), random::dropout_scale<Scale<T>>(attributes.a)};
  const std::uint64_t* const key = call.input<std::uint64_t>(1);
  const T* const x = call.input<T>(0);
  T* const y = call.output<T>(0);
  const sdk::Operand& shape = call.outputs[0];
  Stream& stream = stream_of(call);
  if (shape.count == 0) return;
  if (call.channels_last) {
    const std::int64_t images = shape.shape[0], channels = shape.shape[shape.rank - 1], pixels = shape.count / images / channels;
    const std::int64_t groups = (pixels + per_block - 1) / per_block;
    launch_over(stream, images * channels * groups, drop_channels_last<T>, key, chance, images, pixels, channels, Divisor(channels),
                Divisor(groups), x, y);
    return;
  }
  const bool packs = is_aligned(sizeof(Pack<T, per_block>), x, y);
  launch_over(stream, (shape.count + per_block - 1) / per_block, drop<T>, key, chance, packs, shape.count, x, y);
}

constexpr sdk::Traits traits{.in_place = true, .channels_last = {.inputs = 0b1, .outputs = 0b1}, .channels_last_when = images_last};

}  // namespace
TENON_KERNEL_WITH(dropout, traits, sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
