// SPDX-License-Identifier: Apache-2.0
// Random tensors: every bit is specified by <tenon/sdk/random.h>.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

namespace tenon::reference {
namespace {

/// key is u64[2] = (seed, step), read at execution.
sdk::random::Source source_of(const sdk::Call& call) {
  const std::uint64_t* key = call.input<std::uint64_t>(0);
  return {key[0], key[1], call.attr<tenon_attributes_random>().stream};
}

/// y = low + (high - low) u, u uniform in [0, 1)
///
/// Attributes  stream; a: low; b: high.
template <class T>
void random_uniform(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  sdk::random::fill_uniform(call.output<T>(0), 0, call.outputs[0].count, source_of(call), attributes.a, attributes.b);
}

/// y = mean + deviation z, z standard normal
///
/// Attributes  stream; a: mean; b: standard deviation.
template <class T>
void random_normal(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  sdk::random::fill_normal(call.output<T>(0), 0, call.outputs[0].count, source_of(call), attributes.a, attributes.b);
}

/// y = 1 with probability p, else 0
///
/// Attributes  stream; a: p in [0, 1].
template <class T>
void random_bernoulli(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  sdk::random::fill_bernoulli(call.output<T>(0), 0, call.outputs[0].count, source_of(call), attributes.a);
}

}  // namespace
TENON_KERNEL(random_uniform, float, double)
TENON_KERNEL(random_normal, float, double)
TENON_KERNEL(random_bernoulli, float, double)
}  // namespace tenon::reference
