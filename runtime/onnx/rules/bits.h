// SPDX-License-Identifier: Apache-2.0
// onnx/rules/bits.h - rules of ops on the bits of integers, by arithmetic.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

void bitwise_and(Node& node);
void bitwise_or(Node& node);
void bitwise_xor(Node& node);
void bitwise_not(Node& node);
void bit_shift(Node& node);
/// A NaN keeps its sign and payload only if it is known when the program is made.
void bit_cast(Node& node);

}  // namespace tenon::onnx
