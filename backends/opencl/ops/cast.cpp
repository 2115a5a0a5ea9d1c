// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/element.h>

#include "kernel/map.h"

namespace tenon::opencl {
namespace {

/// y = (to) x, from and to every real dtype; f16 and bf16 need no extension, because they are only loaded and stored.
template <class T>
void cast(const sdk::Call& call) {
  std::string options = types<T>();
  if constexpr (std::is_same_v<T, sdk::Half>) options += " -DT_F16";
  if constexpr (std::is_same_v<T, sdk::BFloat16>) options += " -DT_BF16";
  const std::string function = std::string("cast_") + sdk::name_of(call.attr<tenon_attributes_cast>().to);
  map<1>(call, sources::cast, function.c_str(), options);
}

}  // namespace
TENON_KERNEL_WITH(cast, elementwise_traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
