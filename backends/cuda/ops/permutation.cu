// SPDX-License-Identifier: Apache-2.0
// Random orders: every bit is specified by <tenon/sdk/random.h>.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "movement/radix_sort.h"

namespace tenon::cuda {
namespace {

namespace random = sdk::random;

/// Each block of random bits gives two words.
__global__ void draw_words(const std::uint64_t* key, std::uint32_t consumer, std::int64_t n, std::uint64_t* words,
                           std::uint32_t* elements) {
  const random::Source source{key[0], key[1], consumer};
  for (std::int64_t b = thread_index(); 2 * b < n; b += thread_count()) {
    const random::Lanes lanes = random::lanes_of(source, b);
    for (std::int64_t i = 2 * b; i < 2 * b + 2 && i < n; ++i) {
      words[i] = random::word(lanes, i % 2);
      elements[i] = static_cast<std::uint32_t>(i);
    }
  }
}

template <class T>
__global__ void write_order(const std::uint32_t* elements, std::int64_t n, T* y) {
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) y[i] = static_cast<T>(elements[i]);
}

/// y = 0 .. n-1 in ascending order of (word i, i): the sort leaves equal words in their order.
///
/// Attributes  stream.
template <class T>
void random_permutation(const sdk::Call& call) {
  const std::int64_t n = call.outputs[0].count;
  Stream& stream = stream_of(call);
  if (n == 0) return;
  const SortBuffers buffers = sort_buffers(call.scratch, n);
  launch_over(stream, (n + 1) / 2, draw_words, call.input<std::uint64_t>(0), call.attr<tenon_attributes_random>().stream, n,
              buffers.keys[0], buffers.values[0]);
  const int sorted = sort_pairs(stream, buffers, n, 64);
  launch_over(stream, n, write_order<T>, buffers.values[sorted], n, call.output<T>(0));
}

std::size_t scratch(const sdk::Call& call) {
  return sort_bytes(call.outputs[0].count);
}

const char* refuse(const sdk::Call& call) {
  return call.outputs[0].count <= max_sorted ? nullptr : "random_permutation: expected at most 2^32 - 1 elements";
}

}  // namespace
TENON_KERNEL_WITH(random_permutation, (sdk::Traits{.scratch = scratch, .refuse = refuse}), std::int64_t)
}  // namespace tenon::cuda
