#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# released_run.sh <tenon> <folder>: a training that a release archived (tests/abi/archive/<version>/run) is evaluated to the accuracy that it had then,
# and resumed.
tenon=$1 released=$2
. "$(dirname "$0")/expect.sh"

cp -r "$released" "$work/run"
cd "$work/run" || exit 1
expect 0 '' test -s accuracy
expect 0 "$(cat accuracy)" "$tenon" eval train.yaml --checkpoint checkpoints
expect 0 'Resuming from' "$tenon" train train.yaml --set epochs=12 --set checkpoint.directory=checkpoints --set resume=auto
expect 0 'epoch 12, step' "$tenon" eval train.yaml --checkpoint checkpoints

finish
