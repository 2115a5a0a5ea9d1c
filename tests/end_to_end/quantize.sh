#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quantize.sh <tenon> <source directory>: `tenon quantize` of a trained model and of ONNX files, and what it refuses.
tenon=$1 source=$2
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH

# A convolutional net that has learnt generated digits.
expect 0 '' "$tenon" train "$source/models/convnet/train.yaml" --set data.source=digits --set data.train_count=3000 \
  --set data.test_count=300 --set batch_size=20 --set epochs=1 --set checkpoint.directory="$work/run"
expect 0 'Quantised 5 of 5 nodes with weights; samples: 128 of 3000 samples of' "$tenon" quantize "$work/run" --out "$work/int8.onnx"
expect 0 'Compared on 300 samples' "$tenon" quantize "$work/run" --out "$work/int8.onnx" --calibration percentile --percentile 99.9
expect 0 'accuracy' "$tenon" quantize "$work/run" --out "$work/entropy.onnx" --calibration entropy --samples 64 --activations i8
expect 0 'Wrote' "$tenon" quantize "$work/run" --out "$work/weights.onnx" --weights-only 8
expect 0 'Quantised 2 of 5 nodes' "$tenon" quantize "$work/run" --out "$work/blocks.onnx" --weights-only 4 --block 64
expect 0 'com.microsoft.MatMulNBits' "$tenon" onnx info "$work/blocks.onnx"
expect 1 'expected a power of two of 16 or more, got 48' "$tenon" quantize "$work/run" --out "$work/none.onnx" --weights-only 4 --block 48
expect 0 'dense_1/matmul/MatMul/matmul (MatMul) stays in f32: excluded' "$tenon" quantize "$work/run" --out "$work/part.onnx" --exclude 'dense_1*'
expect 1 '' test -e "$work/int8.onnx.f32.onnx"
expect 0 'QuantizeLinear    17' "$tenon" onnx info "$work/int8.onnx"
expect 0 'input    x f32(batch,28,28)' "$tenon" onnx info "$work/int8.onnx"
expect 0 '(3,10)' "$tenon" run "$work/int8.onnx" --shape x=3x28x28
expect 0 'quantised: 1 MatMulInteger, 3 QLinearConv, 1 QLinearMatMul; run as written: 1 DequantizeLinear, 1 QuantizeLinear' \
  "$tenon" explain "$work/int8.onnx" --shape x=3x28x28

# No more than 3 of 300 digits are lost, and four fifths of the bytes are gone.
expect 0 'lost few' /usr/bin/python3 -c '
import json, subprocess, sys
report = json.loads(subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout)
accuracy, size = report["accuracy"], report["size_bytes"]
assert accuracy["f32"] > 0.5, accuracy
assert accuracy["quantized"] >= accuracy["f32"] - 0.01, accuracy
assert size["quantized"] < 0.3 * size["f32"], size
assert len(report["activations"]) == 9 and report["samples"] == 128, report
print("lost few")' "$tenon" quantize "$work/run" --out "$work/int8.onnx" --format json

# An ONNX file, with samples of a table: no class, so that only outputs are compared.
expect 0 '' "$tenon" export "$source/models/iris/train.yaml" --onnx "$work/iris.onnx"
expect 0 'samples: 75 of 75 samples of' "$tenon" quantize "$work/iris.onnx" --data "$source/models/iris/iris.csv" --out "$work/iris8.onnx"

if /usr/bin/python3 -c 'import onnx' 2>/dev/null; then
  expect 0 'checked 5 files' /usr/bin/python3 -c '
import sys, onnx
for path in sys.argv[1:]:
    onnx.checker.check_model(path, full_check=True)
print(f"checked {len(sys.argv) - 1} files")' "$work"/{int8,entropy,weights,part,iris8}.onnx
else
  echo "not run: the Python of Debian has no package onnx; tools/setup installs it"
fi

expect 1 '--data: expected a folder or file of samples' "$tenon" quantize "$work/iris.onnx" --out "$work/none.onnx"
expect 1 "$work/absent" "$tenon" quantize "$work/iris.onnx" --data "$work/absent" --out "$work/none.onnx"
expect 1 "'nothing*' matches no node of the model" "$tenon" quantize "$work/run" --out "$work/none.onnx" --exclude 'nothing*'
expect 1 "operator 'Softmax' cannot be quantised" "$tenon" quantize "$work/run" --out "$work/none.onnx" --op-types Softmax
expect 2 '--calibration' "$tenon" quantize "$work/run" --out "$work/none.onnx" --calibration best
expect 2 '--out' "$tenon" quantize "$work/run"
expect 1 '' test -e "$work/none.onnx"
finish
