#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export.sh <tenon> <source directory>: `tenon export` of the models in the tree, imported again, and what it refuses.
tenon=$1 source=$2
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH

for model in autoencoder conv1d_signal convnet fashion_mnist gpt iris lstm_lm mnist_mlp transformer_lm; do
  expect 0 'Checked: imported again' "$tenon" export "$source/models/$model/train.yaml" --onnx "$work/$model.onnx" --check
done
expect 0 'Weights: initial ones' "$tenon" export "$source/models/mnist_mlp/model.yaml" --onnx "$work/of_model.onnx" --check
expect 0 'opset    ai.onnx 23' bash -c "'$tenon' export '$source/models/gpt/train.yaml' --onnx '$work/newest.onnx' --opset 23 --check &&
  '$tenon' onnx info '$work/newest.onnx'"
expect 0 'input    x f32(4,' bash -c "'$tenon' export '$source/models/mnist_mlp/train.yaml' --onnx '$work/fixed.onnx' --batch 4 --check &&
  '$tenon' onnx info '$work/fixed.onnx'"
expect 0 '(3,10)' "$tenon" run "$work/mnist_mlp.onnx" --shape x=3x28x28

# The checker of ONNX's own package, with its shape inference. Debian's knows opsets up to 17.
if /usr/bin/python3 -c 'import onnx' 2>/dev/null; then
  expect 0 'checked 10 files' /usr/bin/python3 -c '
import sys, onnx
for path in sys.argv[1:]:
    onnx.checker.check_model(path, full_check=True)
print(f"checked {len(sys.argv) - 1} files")' "$work"/{autoencoder,conv1d_signal,convnet,fashion_mnist,gpt,iris,lstm_lm,mnist_mlp,transformer_lm,fixed}.onnx
else
  echo "not run: the Python of Debian has no package onnx; tools/setup installs it"
fi

# With weights of a checkpoint.
expect 0 '' "$tenon" train "$source/models/iris/train.yaml" --set epochs=1 --set checkpoint.directory="$work/run"
expect 0 'Checkpoint: ' "$tenon" export "$work/run" --onnx "$work/trained.onnx" --check

expect 1 'expected an opset from 17 to 23, got 9' "$tenon" export "$source/models/iris/train.yaml" --onnx "$work/old.onnx" --opset 9
expect 1 'the shape of a sample is not known yet' "$tenon" export "$source/models/linear_regression/train.yaml" --onnx "$work/none.onnx"
expect 1 "$work/absent" "$tenon" export "$source/models/iris/train.yaml" --onnx "$work/absent/x.onnx"
expect 1 '' test -e "$work/old.onnx" -o -e "$work/none.onnx"
finish
