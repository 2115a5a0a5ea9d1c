// SPDX-License-Identifier: Apache-2.0
// Messages of kernel faults.
#include "backends/cuda/device/fault.h"

#include <doctest/doctest.h>

namespace tenon::cuda {
namespace {

TEST_CASE("cuda fault: the message is that of the CPU backends") {
  FaultRecord record{fault_written, FaultKind::index, TENON_OP_Gather, 4, 3, 7, -5, 5};
  CHECK(text_of(record) == "gather: index 7 at position 3 is out of range [-5, 5)");
  record = {fault_written, FaultKind::label, TENON_OP_SoftmaxCrossEntropyLoss, 4, 2, 10, 0, 10};
  CHECK(text_of(record) == "softmax_cross_entropy: label 10 at index 2 is out of range [0, 10)");
  record = {fault_written, FaultKind::zero_divisor, TENON_OP_Div, 0, 0, 0, 0, 0};
  CHECK(text_of(record) == "div: an integer divided by zero; expected divisors other than 0");
}

}  // namespace
}  // namespace tenon::cuda
