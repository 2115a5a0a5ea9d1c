// Dropout, forward and, applied to dy with the same key and stream, backward.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

#include "launch.h"
#include "walk.cuh"

namespace tenon::cuda {
namespace {

namespace random = sdk::random;

constexpr int per_block = 4;  ///< elements that a block of random bits decides about

/// y may be x: each thread reads before it writes. `packs`: both are aligned for four elements at once.
template <class T>
__global__ void drop(const std::uint64_t* key, std::uint32_t consumer, std::uint64_t threshold, T scale, bool packs, std::int64_t count,
                     const T* x, T* y) {
  const random::Source source{key[0], key[1], consumer};
  for (std::int64_t b = thread_number(); b * per_block < count; b += thread_count()) {
    const random::Lanes lanes = random::lanes_of(source, b);
    const std::int64_t first = b * per_block;
    if (packs && first + per_block <= count) {
      Pack<T, per_block> kept = reinterpret_cast<const Pack<T, per_block>*>(x)[b];
      for (int j = 0; j < per_block; ++j) kept.at[j] = random::bernoulli(lanes, j, threshold) ? T(0) : kept.at[j] * scale;
      reinterpret_cast<Pack<T, per_block>*>(y)[b] = kept;
    } else {
      for (int j = 0; j < per_block && first + j < count; ++j) {
        y[first + j] = random::bernoulli(lanes, j, threshold) ? T(0) : x[first + j] * scale;
      }
    }
  }
}

/// y = 0 with probability p, else x / (1 - p); p = 0 is the identity.
///
/// Shapes      x, y of one shape, y may be x; key is u64[2] = (seed, step), read at execution.
/// Attributes  stream; a: p in [0, 1).
/// Source      Srivastava et al.: Dropout (2014), in the inverted form that leaves inference alone. Bits: <tenon/sdk/random.h>.
template <class T>
void dropout(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  const std::int64_t count = call.outputs[0].count;
  const T* const x = call.input<T>(0);
  T* const y = call.output<T>(0);
  const bool packs = (reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(y)) % sizeof(Pack<T, per_block>) == 0;
  Stream& stream = stream_of(call);
  launch(stream, grid_stride(stream.device(), (count + per_block - 1) / per_block), drop<T>, call.input<std::uint64_t>(1),
         attributes.stream, random::bernoulli_threshold(attributes.a), random::dropout_scale<T>(attributes.a), packs, count, x, y);
}

}  // namespace
TENON_KERNEL_WITH(dropout, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::cuda
