// SPDX-License-Identifier: Apache-2.0
// sdk_testing_kernels.h - the kernels of the test backends, which count their calls.
#pragma once

#include <tenon/sdk/kernel.h>

#include "sdk_testing.h"

namespace tenon::sdk_test {

/// Counts a kernel call.
inline void note() {
  probe.kernels.fetch_add(1, std::memory_order_relaxed);
}

extern const sdk::Kernel kernel_add, kernel_sub, kernel_mul, kernel_neg, kernel_relu, kernel_sigmoid, kernel_tanh, kernel_softmax,
    kernel_log_softmax, kernel_relu_grad, kernel_div, kernel_reshape, kernel_flatten, kernel_transpose, kernel_expand, kernel_cast,
    kernel_reduce_sum, kernel_matmul, kernel_gemm, kernel_sgd_step, kernel_softmax_cross_entropy;

namespace together {
extern const sdk::Kernel kernel_matmul;          ///< runs several calls at once, and the gradient of a relu after them
extern const sdk::Kernel kernel_gemm_with_sums;  ///< sums the columns of its right side, too; honours relu_result alone of epilogues
extern const sdk::Kernel kernel_sigmoid;         ///< in place, so that its run_together is not called
}  // namespace together
namespace dense {
extern const sdk::Kernel kernel_transpose;  ///< only of dense operands
}

}  // namespace tenon::sdk_test
