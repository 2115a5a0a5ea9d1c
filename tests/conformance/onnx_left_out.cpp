// SPDX-License-Identifier: Apache-2.0
#include "onnx_left_out.h"

#include <algorithm>
#include <string>

#include "loader/find.h"

namespace tenon::conformance {
namespace {

constexpr const char* strings = "Tenon has no tensors of strings.";
constexpr const char* training = "ai.onnx.preview.training describes training inside of a file; Tenon trains models by itself.";
constexpr const char* tensors = "Inputs and outputs of onnx::Model are tensors; sequences and optionals are values inside of a model.";
constexpr const char* random = "The expected outputs are random numbers of NumPy.";

constexpr const char* conversion = "The data of ONNX 1.12 rounds to bfloat16 towards zero, or has another shape than the model states.";

constexpr LeftOut table[] = {
    {"*/test_strnorm*", strings},
    {"node/test_tfidfvectorizer_*", strings},
    {"node/test_cast*STRING*", strings},
    {"node/test_adagrad*", training},
    {"node/test_adam*", training},
    {"node/test_momentum*", training},
    {"node/test_nesterov_momentum*", training},
    {"simple/test_gradient_*", training},
    {"node/test_identity_opt", tensors},
    {"node/test_identity_sequence", tensors},
    {"node/test_if_opt", tensors},
    {"node/test_if_seq", tensors},
    {"node/test_loop13_seq", tensors},
    {"node/test_loop16_seq_none", tensors},
    {"node/test_optional_*", tensors},
    {"node/test_sequence_insert_*", tensors},
    {"node/test_sequence_map_*", tensors},
    {"node/test_bernoulli*", random},
    {"node/test_training_dropout", random},
    {"node/test_training_dropout_default", random},
    {"node/test_training_dropout_default_mask", random},
    {"node/test_training_dropout_mask", random},
    {"node/test_cast_FLOAT_to_BFLOAT16", conversion},
    {"node/test_castlike_*BFLOAT16*", conversion},
};

}  // namespace

std::span<const LeftOut> onnx_left_out() {
  return table;
}

const char* why_left_out(std::string_view test) {
  const auto* found =
      std::ranges::find_if(table, [&](const LeftOut& entry) { return loader::matches_glob(entry.test, std::string(test)); });
  return found == std::end(table) ? nullptr : found->reason;
}

}  // namespace tenon::conformance
