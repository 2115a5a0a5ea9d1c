#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh <build folder>: in a copy of the tree with layer_scale: trains a model that has it, compares its gradients with finite differences,
# and runs the tests that compare lists of layers.
build=$1
cmake --build "$build" --target tenon_command tenon_backend_reference unit_config
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat >"$folder/train.yaml" <<'YAML'
model: {input: {shape: [3]}, layers: [{dense: {units: 4, activation: tanh}}, {layer_scale: {initial: 0.5}}, {dense: {units: 1}}]}
data: {source: linear_regression, features: 3, train_count: 64, test_count: 32}
loss: mse
optimizer: {name: sgd, learning_rate: 0.05}
batch_size: 16
epochs: 3
YAML
for verb in train gradcheck; do "$build/bin/tenon" "$verb" "$folder/train.yaml" --device reference:0; done
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^(unit\.config|end_to_end\.yaml_reference|style\..*)$'
