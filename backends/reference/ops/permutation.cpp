// SPDX-License-Identifier: Apache-2.0
// Random orders: every bit is specified by <tenon/sdk/random.h>.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

#include <algorithm>
#include <utility>

namespace tenon::reference {
namespace {

/// A random word and its element index.
using Draw = std::pair<std::uint64_t, std::int64_t>;

/// y = 0 .. n-1 in ascending order of (word i, i)
///
/// Attributes  stream.
template <class T>
void random_permutation(const sdk::Call& call) {
  const std::uint64_t* key = call.input<std::uint64_t>(0);
  const sdk::random::Source source{key[0], key[1], call.attr<tenon_attributes_random>().stream};
  T* y = call.output<T>(0);
  const std::int64_t n = call.outputs[0].count;
  Draw* const draws = static_cast<Draw*>(call.scratch);
  for (std::int64_t i = 0; i < n; ++i) draws[i] = {sdk::random::word_of(source, i), i};
  std::sort(draws, draws + n);
  for (std::int64_t i = 0; i < n; ++i) y[i] = draws[i].second;
}

std::size_t scratch(const sdk::Call& call) {
  return static_cast<std::size_t>(call.outputs[0].count) * sizeof(Draw);
}

}  // namespace
TENON_KERNEL_WITH(random_permutation, (sdk::Traits{.scratch = scratch}), std::int64_t)
}  // namespace tenon::reference
