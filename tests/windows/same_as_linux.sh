#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# same_as_linux.sh <emulator> <tenon.exe> <tenon> <source directory>: the first 50 steps of models/mnist_mlp have the losses of the Linux build,
# the same bits on `reference` and within 1e-4 on `openblas`, whose kernels may be those of another processor; each build resumes the other's
# checkpoint.
emulator=$1 program=$2 linux=$3 source=$4
. "$source/tests/end_to_end/expect.sh"
unset "${!TENON_@}"
[ -x "$linux" ] || skip "no Linux build: tools/build release"
train() { # train <folder> <device> <epochs> <command...>
  local folder=$1 device=$2 epochs=$3
  shift 3
  "$@" train "$source/models/mnist_mlp/train.yaml" --device "$device" --set data.source=digits --set data.train_count=100 --set data.test_count=100 \
    --set epochs="$epochs" --set deterministic=true --set resume=auto --set checkpoint.directory="$folder" --set "callbacks=[{json: {file: $folder.jsonl}}]"
}
for device in reference openblas; do
  expect 0 'test: loss: ' train "$work/linux-$device" $device 50 "$linux"
  expect 0 'test: loss: ' train "$work/windows-$device" $device 50 "$emulator" "$program"
done
compare='
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
for device, limit in (("reference", 0), ("openblas", 1e-4)):
    linux, windows = ([json.loads(line)["loss"] for line in (folder / f"{system}-{device}.jsonl").read_text().splitlines()] for system in ("linux", "windows"))
    apart = max(abs(a - b) / a for a, b in zip(linux, windows, strict=True))
    print(f"{device}: {len(linux)} losses, at most {apart:.1e} apart")
    assert apart <= limit
'
expect 0 'openblas: 50 losses' python3 -c "$compare" "$work"
cat "$work/out"
expect_same "$work/linux-reference/epoch-000050.safetensors" "$work/windows-reference/epoch-000050.safetensors"
expect 0 'Resuming from' train "$work/windows-openblas" openblas 51 "$linux"
expect 0 'Resuming from' train "$work/linux-openblas" openblas 51 "$emulator" "$program"
finish
