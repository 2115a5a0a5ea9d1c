// SPDX-License-Identifier: Apache-2.0
// ops/pool.cpp - max and average pooling of channels-last images, with vectors along the channels.
#include <tenon/sdk/kernel.h>

#include "conv/average_pool.h"
#include "conv/max_pool.h"

namespace tenon::openblas {

TENON_KERNEL_WITH(max_pool,
                  (sdk::Traits{.channels_last = {.inputs = 1, .outputs = 3}, .scratch = max_pool_scratch, .refuse = refuse_max_pool}),
                  sdk::BFloat16, float, double, std::int8_t, std::uint8_t)
TENON_KERNEL_WITH(max_pool_grad, (sdk::Traits{.channels_last = {.inputs = 3, .outputs = 1}, .scratch = max_pool_grad_scratch}),
                  sdk::BFloat16, float, double)
TENON_KERNEL_WITH(average_pool, (sdk::Traits{.channels_last = {.inputs = 1, .outputs = 1}}), sdk::BFloat16, float, double)
TENON_KERNEL_WITH(average_pool_grad, (sdk::Traits{.channels_last = {.inputs = 1, .outputs = 1}, .scratch = average_pool_grad_scratch}),
                  sdk::BFloat16, float, double)

}  // namespace tenon::openblas
