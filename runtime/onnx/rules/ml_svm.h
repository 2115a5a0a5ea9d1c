// SPDX-License-Identifier: Apache-2.0
// onnx/rules/ml_svm.h - support vector machines of ai.onnx.ml.
#pragma once

#include "onnx/node.h"

namespace tenon::onnx {

void svm_regressor(Node& node);
void svm_classifier(Node& node);

}  // namespace tenon::onnx
