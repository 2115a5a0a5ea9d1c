// SPDX-License-Identifier: Apache-2.0
// Transposed convolution: the gradient of a convolution by its image, with a bias.
#include "conv/input_grad.h"

namespace tenon::opencl {
namespace {

template <class T>
void conv_transpose(const sdk::Call& call) {
  input_grad<T>(call);
}

}  // namespace
TENON_KERNEL_WITH(conv_transpose, (sdk::Traits{.scratch = input_grad_scratch, .refuse = refuse_volumes}), float, double)
}  // namespace tenon::opencl
