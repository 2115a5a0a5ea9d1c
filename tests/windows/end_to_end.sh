#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# end_to_end.sh <emulator> <tenon.exe> <source directory>: what a user of Windows does first, by Wine.
emulator=$1 program=$2 source=$3
. "$source/tests/end_to_end/expect.sh"
unset "${!TENON_@}"
tenon=$work/tenon
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$emulator" "$program" >"$tenon"
chmod +x "$tenon"
backends=$(dirname "$program")/../lib/tenon/backends

expect 0 '2 of 2 backends healthy' "$tenon" doctor
expect 0 'Data: 12000 generated digits' "$tenon" demo --epochs 1

# A backend in a folder with a name in Chinese and spaces, named in a file with such a name.
folder="$work/后端 文件夹"
mkdir "$folder"
cp "$backends/tenon_backend_openblas.dll" "$folder"
printf 'backends: {search: ["%s"], use: [openblas]}\n' "$folder" >"$work/设置.yaml"
expect 0 '文件夹' "$tenon" doctor --config "$work/设置.yaml"
# What is no library is refused with the reason, and the other backends are used.
printf 'no library' >"$folder/tenon_backend_broken.dll"
expect 1 'broken' "$tenon" doctor --config "$work/设置.yaml"

# Training that is killed is resumed from its last checkpoint, with the same bits.
run=("$tenon" train "$source/models/fashion_mnist/train.yaml" --set data.source=digits --set data.train_count=2000
  --set data.test_count=100 --set model.layers.1.dense.units=500 --set epochs=4 --set deterministic=true --set checkpoint.keep=0)
expect 0 'test: loss: ' "${run[@]}" --set checkpoint.directory="$work/straight"
"${run[@]}" --set checkpoint.directory="$work/killed" >"$work/log" 2>&1 </dev/null &
pid=$!
for _ in $(seq 6000); do
  [ -e "$work/killed/epoch-000001.yaml" ] && break
  sleep 0.01
done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
expect 0 'Resuming from' "${run[@]}" --set checkpoint.directory="$work/killed" --set resume=auto
expect_same "$work/straight/epoch-000004.safetensors" "$work/killed/epoch-000004.safetensors"

# A backend that new-backend writes, built by MinGW.
expect 0 'tenon_backend_mine.dll' "$tenon" new-backend mine --out "$work"
expect 0 '' cmake -S "$work/mine" -B "$work/mine/build" -DCMAKE_TOOLCHAIN_FILE="$source/tools/cmake/windows.cmake" \
  -Dtenon_DIR="$(dirname "$program")/../lib/cmake/tenon" # CMAKE_PREFIX_PATH is searched below the toolchain's root
expect 0 '' cmake --build "$work/mine/build"
TENON_TEST_SIZE=small expect 0 ' 0 fail, 0 unsupported, ' "$tenon" conformance --plugin "$work/mine/build/tenon_backend_mine.dll" --profile core
finish
