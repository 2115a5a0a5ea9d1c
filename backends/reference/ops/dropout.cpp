// SPDX-License-Identifier: Apache-2.0
// Dropout, forward and, applied to dy with the same key and stream, backward.
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/random.h>

namespace tenon::reference {
namespace {

/// y = 0 with probability p, else x / (1 - p); p = 0 is the identity.
///
/// Shapes      x, y of one shape, y may be x; key is u64[2] = (seed, step), read at execution.
/// Attributes  stream; a: p in [0, 1).
/// Source      Srivastava et al.: Dropout (2014), in the inverted form, which needs no scaling at inference. Bits: <tenon/sdk/random.h>.
template <class T>
void dropout(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_random>();
  const std::uint64_t* key = call.input<std::uint64_t>(1);
  sdk::random::dropout(call.input<T>(0), call.output<T>(0), 0, call.outputs[0].count, {key[0], key[1], attributes.stream}, attributes.a);
}

}  // namespace
TENON_KERNEL_WITH(dropout, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::reference
