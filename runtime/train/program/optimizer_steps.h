// SPDX-License-Identifier: Apache-2.0
// train/program/optimizer_steps.h - the steps of optimizers without an op of their own, of elementwise ops that backends fuse.
#pragma once

#include <vector>

#include "train/program/optimizers.h"

namespace tenon::train {

/// With v, and as far as they are there mean and velocity: v = rho v + (1 - rho) g^2; mean = rho mean + (1 - rho) g; d = g / sqrt(v -
/// mean^2), with epsilon as in RmsPropStep; velocity = momentum velocity + d; w -= lr velocity. As in PyTorch.
void rmsprop_with_momentum(const OptimizerInputs& in, const std::vector<Value>& gradients);

/// With m and v as in AdamStep and mu(t) = beta1 (1 - 0.96^(0.004 t) / 2), and M(t) the product of mu(1) to mu(t):
/// w -= lr ((1 - mu(t)) / (1 - M(t)) g + mu(t + 1) / (1 - M(t + 1)) m) / (sqrt(v / (1 - beta2^t)) + epsilon). As in PyTorch.
void nadam_step(const OptimizerInputs& in, const std::vector<Value>& gradients);

/// With m and v as in AdamStep, R = 2 / (1 - beta2) - 1 and r = R - 2 t beta2^t / (1 - beta2^t): w -= lr m / (1 - beta1^t), where r > 5
/// times sqrt((r - 4) (r - 2) R / ((R - 4) (R - 2) r)) sqrt(1 - beta2^t) / (sqrt(v) + epsilon). As in PyTorch.
void radam_step(const OptimizerInputs& in, const std::vector<Value>& gradients);

}  // namespace tenon::train
