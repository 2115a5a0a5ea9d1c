#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# real_data.sh <tenon> <source directory>: a short run on Fashion-MNIST, if ../shared/data or TENON_TEST_DATA has it.
tenon=$1 source=$2
data=${TENON_TEST_DATA:-$source/../shared/data}/fashion-mnist
if [ ! -d "$data" ]; then
  echo "skipped: no Fashion-MNIST in $data (set TENON_TEST_DATA to another folder)"
  exit 77
fi
. "$(dirname "$0")/expect.sh"
fashion=$source/models/fashion_mnist/train.yaml
# Initial weights, order and masks are the same on both backends: the first 50 steps agree within 1e-4.
for device in openblas reference; do
  expect 0 'loss: ' "$tenon" train "$fashion" --data "$data" --device $device --set epochs=1 --set steps_per_epoch=50 --json "$work/$device.jsonl"
done
loss() { sed -n '1s/.*"loss":\([0-9.e-]*\).*/\1/p' "$work/$1.jsonl"; }
difference=$(awk -v a="$(loss openblas)" -v b="$(loss reference)" 'BEGIN { d = a - b; print d < 0 ? -d : d }')
expect 0 '' awk -v d="$difference" 'BEGIN { exit !(d < 1e-4) }'
expect 0 'accuracy: ' "$tenon" train "$fashion" --data "$data" --set epochs=1 --json "$work/one.jsonl"
accuracy=$(sed -n '$s/.*"accuracy":\([0-9.]*\).*/\1/p' "$work/one.jsonl")
expect 0 '' awk -v a="$accuracy" 'BEGIN { exit !(a > 0.80) }'
finish
