// SPDX-License-Identifier: Apache-2.0
// Random tensors: every bit is specified by <tenon/sdk/random.h>.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

namespace random = sdk::random;

template <class T>
struct Uniform {
  static constexpr int per_block = static_cast<int>(random::uniforms_per_block<T>);
  T low, high;
  __device__ void operator()(const random::Lanes& lanes, T (&out_y)[per_block]) const {
    for (int j = 0; j < per_block; ++j) out_y[j] = random::uniform(lanes, j, low, high);
  }
};

template <class T>
struct Normal {
  static constexpr int per_block = 4;
  double mean, deviation;
  __device__ void operator()(const random::Lanes& lanes, T (&out_y)[per_block]) const {
    const random::Normals normals = random::normals(lanes);
    for (int j = 0; j < per_block; ++j) out_y[j] = static_cast<T>(std::fma(deviation, normals.z[j], mean));
  }
};

template <class T>
struct Bernoulli {
  static constexpr int per_block = 4;
  std::uint64_t threshold;
  __device__ void operator()(const random::Lanes& lanes, T (&out_y)[per_block]) const {
    for (int j = 0; j < per_block; ++j) out_y[j] = random::bernoulli(lanes, j, threshold) ? T(1) : T(0);
  }
};

/// A block of random bits per thread. `packs`: y is aligned to store a block at once.
template <class T, class Draw>
__global__ void draw_blocks(Draw draw, const std::uint64_t* key, std::uint32_t consumer, bool packs, std::int64_t count, T* y) {
  constexpr int per_block = Draw::per_block;
  const random::Source source{key[0], key[1], consumer};
  for (std::int64_t b = thread_index(); b * per_block < count; b += thread_count()) {
    Pack<T, per_block> drawn;
    draw(random::lanes_of(source, b), drawn.at);
    const std::int64_t first = b * per_block;
    if (packs && first + per_block <= count) {
      store_pack<per_block>(y + b * per_block, drawn);
    } else {
      for (int j = 0; j < per_block && first + j < count; ++j) y[first + j] = drawn.at[j];
    }
  }
}

/// key is u64[2] = (seed, step), read at execution.
template <class T, class Draw>
void fill(const sdk::Call& call, const Draw& draw) {
  const std::int64_t count = call.outputs[0].count;
  T* const y = call.output<T>(0);
  const bool packs = is_aligned(sizeof(Pack<T, Draw::per_block>), y);
  Stream& stream = stream_of(call);
  launch_over(stream, (count + Draw::per_block - 1) / Draw::per_block, draw_blocks<T, Draw>, draw, call.input<std::uint64_t>(0),
              call.attr<tenon_attributes_random>().stream, packs, count, y);
}

/// y = low + (high - low) u, u uniform in [0, 1)
///
/// Attributes  stream; a: low; b: high.
template <class T>
void random_uniform(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  fill<T>(call, Uniform<T>{static_cast<T>(attributes.a), static_cast<T>(attributes.b)});
}

/// y = mean + deviation z, z standard normal
///
/// Attributes  stream; a: mean; b: standard deviation.
template <class T>
void random_normal(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  fill<T>(call, Normal<T>{attributes.a, attributes.b});
}

/// y = 1 with probability p, else 0
///
/// Attributes  stream; a: p in [0, 1].
template <class T>
void random_bernoulli(const sdk::Call& call) {
  fill<T>(call, Bernoulli<T>{random::bernoulli_threshold(call.attr<tenon_attributes_random>().a)});
}

}  // namespace
TENON_KERNEL(random_uniform, float, double)
TENON_KERNEL(random_normal, float, double)
TENON_KERNEL(random_bernoulli, float, double)
}  // namespace tenon::cuda
