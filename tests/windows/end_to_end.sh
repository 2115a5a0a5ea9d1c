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

# Continuous integration builds `reference` alone, which is slower.
backend=openblas count=2 units=500
[ -f "$backends/tenon_backend_openblas.dll" ] || { backend=reference count=1 units=100; }
expect 0 "$count of $count backend" "$tenon" doctor
expect 0 'Data: 12000 generated digits' "$tenon" demo --epochs 1

# A backend in a folder with a name in Chinese and spaces, named in a file with such a name.
folder="$work/后端 文件夹"
mkdir "$folder"
cp "$backends/tenon_backend_$backend.dll" "$folder"
printf 'backends: {search: ["%s"], use: [%s]}\n' "$folder" "$backend" >"$work/设置.yaml"
expect 0 '文件夹' "$tenon" doctor --config "$work/设置.yaml"
# What cannot be used is refused with the reason: no library, one for 32 bits, one of another ABI, one that needs an absent DLL, one that
# crashes. The run goes on with the others.
faults=$(dirname "$program")/../tests/fault
printf 'no library' >"$folder/tenon_backend_broken.dll"
cp "$faults"/plugins/{too_new/tenon_backend_too_new,missing_library/tenon_backend_missing_library}.dll "$faults"/endings/*/tenon_backend_crashes_in_create.dll "$folder"
python3 - "$folder/tenon_backend_$backend.dll" "$folder/tenon_backend_old.dll" <<'END'
import sys
dll = bytearray(open(sys.argv[1], "rb").read())
header = int.from_bytes(dll[0x3C:0x40], "little")
dll[header + 4:header + 6] = b"\x4c\x01"  # the machine: i386
dll[header + 24:header + 26] = b"\x0b\x01"  # a 32-bit file
open(sys.argv[2], "wb").write(dll)
END
printf 'backends: {search: ["%s"]}\n' "$folder" >"$work/всё.yaml"
for reason in 'the file is not a library' 'got 32-bit little-endian x86' 'the plugin ABI 1.1 to 1.3' 'the library tenon_absent.dll' \
  'crashed (exception 0xc0000005, access violation)'; do
  expect 1 "$reason" "$tenon" doctor --config "$work/всё.yaml"
done
expect 0 'Data: 12000 generated digits' "$tenon" demo --epochs 1 --config "$work/всё.yaml"
rm "$folder"/*

# Training that is killed is resumed from its last checkpoint, with the same bits.
run=("$tenon" train "$source/models/fashion_mnist/train.yaml" --set data.source=digits --set data.train_count=2000
  --set data.test_count=100 --set model.layers.1.dense.units=$units --set epochs=4 --set deterministic=true --set checkpoint.keep=0)
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
