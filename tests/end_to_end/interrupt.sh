#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# interrupt.sh <tenon> <source directory>: interrupted and resumed training gives the same result as uninterrupted training.
tenon=$1 source=$2
. "$(dirname "$0")/expect.sh"
run=("$tenon" train "$source/models/fashion_mnist/train.yaml" --set data.source=digits --set data.train_count=4000
  --set data.test_count=100 --set model.layers.1.dense.units=1000 --set epochs=6 --set deterministic=true --set checkpoint.keep=0)

# The layer is wide so that an epoch takes longer than the shell needs to notice the end of the first one.

# interrupt <signal> <folder>: sends the signal after the first epoch's checkpoint, in the middle of a later epoch; sets $code.
interrupt() {
  rm -rf "$2"
  "${run[@]}" --set checkpoint.directory="$2" >"$work/log" 2>&1 </dev/null &
  local pid=$!
  for _ in $(seq 3000); do
    [ -e "$2/epoch-000001.yaml" ] && break
    sleep 0.01
  done
  kill -s "$1" "$pid"
  kill -s "$1" "$pid"  # a key that is pressed twice
  wait "$pid"
  code=$?
}

expect 0 'test: loss: ' "${run[@]}" --set checkpoint.directory="$work/straight"
for signal in INT TERM HUP; do
  # A background process of a script without job control ignores SIGINT unless it installs a handler, as the command does.
  interrupt "$signal" "$work/stopped"
  expect 0 '' test "$code" -eq 130
  expect 0 'Interrupted after step ' cat "$work/log"
  expect 0 "--set resume=$work/stopped/interrupted.yaml" cat "$work/log"
  expect 0 'Resuming from' "${run[@]}" --set checkpoint.directory="$work/stopped" --set resume="$work/stopped/interrupted.yaml"
  expect_same "$work/straight/epoch-000006.safetensors" "$work/stopped/epoch-000006.safetensors"
done

# `resume: auto` finds it too, as the newest checkpoint.
interrupt TERM "$work/stopped"
expect 0 "Resuming from $work/stopped/interrupted.yaml" "${run[@]}" --set checkpoint.directory="$work/stopped" --set resume=auto
expect_same "$work/straight/epoch-000006.safetensors" "$work/stopped/epoch-000006.safetensors"
finish
