#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# processes.sh <tenon> <source directory> <mpirun> <ranks> [number of kills]: processes that mpirun starts train as one process does, and end
# together.
tenon=$1 source=$2 mpirun=$3 ranks=$4 kills=${5:-5}
. "$(dirname "$0")/expect.sh"
[ -n "$mpirun" ] || skip "mpirun is not installed: tools/setup"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# More processes than processors; no message goes through a network.
mpi=("$mpirun" --oversubscribe --bind-to none --mca btl self,vader)
options=(--set data.source=digits --set data.train_count=600 --set data.test_count=100 --set model.layers.1.dense.units=32 --set epochs=2
  --set batch_size=50 --set threads=1 --set optimizer.name=sgd --set optimizer.learning_rate=0.05 --device openblas)
run=("$tenon" train "$source/models/fashion_mnist/train.yaml" "${options[@]}")
data=(--set parallel.mode=data)

# close <log> <log>: logs of JSON lines with the same losses of epochs and test, within 1e-5. after <n> <log> <log>: but for the first n of the
# second.
close() { after 0 "$@"; }
after() {
  python3 -c 'import json, sys
a, b = [[event["loss"] for event in map(json.loads, open(file)) if "loss" in event] for file in sys.argv[2:]]
b = b[int(sys.argv[1]):]
if len(a) != len(b) or len(a) < 2 or any(abs(x - y) > 1e-5 for x, y in zip(a, b)): sys.exit(f"{a} and {b} differ")' "$@"
}

# reads_parts <processes> <log>: each process has read the checkpoint once, and not the whole of it.
reads_parts() {
  python3 -c 'import re, sys
count, log = int(sys.argv[1]), open(sys.argv[2]).read()
reads = [tuple(map(int, found)) for found in re.findall(r"safetensors: read (\d+) of (\d+) bytes", log)]
if len(reads) != count or not all(part < whole for part, whole in reads): sys.exit(f"{reads} of {count} processes")' "$@"
}
# damage <file> <tensor>: inverts a bit of the tensor.
damage() {
  python3 -c 'import json, sys
data = bytearray(open(sys.argv[1], "rb").read())
length = int.from_bytes(data[:8], "little")
data[8 + length + json.loads(data[8 : 8 + length])[sys.argv[2]]["data_offsets"][0]] ^= 1
open(sys.argv[1], "wb").write(data)' "$@"
}

expect 0 'test: loss: ' "${run[@]}" --json "$work/one.jsonl" --set checkpoint.directory="$work/one" --set checkpoint.keep=0
for count in 1 2 3 4; do
  expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n $count "${run[@]}" "${data[@]}" --json "$work/$count.jsonl" \
    --set checkpoint.directory="$work/$count" --set checkpoint.keep=0
  expect 0 '' close "$work/one.jsonl" "$work/$count.jsonl"
done
expect 0 'on 2 processes' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" --set checkpoint.directory="$work/again" --set checkpoint.keep=0
expect_same "$work/2/epoch-000002.safetensors" "$work/again/epoch-000002.safetensors"

# Several devices in each process, also with fewer samples than devices.
two=(--set 'virtual=[{of: "openblas:0", count: 2}]' --set 'parallel.devices=["openblas:0", "openblas:1"]')
for count in 1 2; do
  expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n $count "${run[@]}" "${data[@]}" "${two[@]}" --json "$work/two.jsonl" \
    --set checkpoint.directory="$work/two_$count" --set checkpoint.keep=0
  expect 0 '' close "$work/one.jsonl" "$work/two.jsonl"
done
expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" "${two[@]}" --set checkpoint.directory="$work/two_again" --set checkpoint.keep=0
expect_same "$work/two_2/epoch-000002.safetensors" "$work/two_again/epoch-000002.safetensors"
expect 1 "process 1 differs from process 0 in the number of devices: expected '1', got '2'" timeout 60 \
  "${mpi[@]}" -n 1 "${run[@]}" "${data[@]}" : -n 1 "${run[@]}" "${data[@]}" "${two[@]}"

# Resumed by another number of processes, and by one.
for count in 3 1; do
  expect 0 'Resuming from' timeout 60 "${mpi[@]}" -n $count "${run[@]}" "${data[@]}" --set resume="$work/2/epoch-000001.yaml" --json "$work/resumed.jsonl"
  expect 0 '' after 1 "$work/resumed.jsonl" "$work/2.jsonl"
done

# Sharded optimizer state: the checkpoints are those of whole state, and are resumed by any number of processes.
adam=(--set optimizer=adam) keep=(--set checkpoint.keep=0) shard=(--set parallel.shard=optimizer)
expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" "${adam[@]}" "${keep[@]}" --json "$work/whole.jsonl" --set checkpoint.directory="$work/whole"
expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" "${adam[@]}" "${shard[@]}" "${keep[@]}" --set checkpoint.directory="$work/sharded"
for epoch in 1 2; do
  expect_same "$work/whole/epoch-00000$epoch.safetensors" "$work/sharded/epoch-00000$epoch.safetensors"
done
expect 0 'Resuming from' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" "${two[@]}" "${adam[@]}" "${shard[@]}" --json "$work/resumed.jsonl" \
  --set resume="$work/sharded/epoch-000001.yaml" --set checkpoint.directory="$work/sharded_two"
expect 0 '' after 1 "$work/resumed.jsonl" "$work/whole.jsonl"
expect 0 'Resuming from' "${run[@]}" "${adam[@]}" --set resume="$work/sharded_two/epoch-000002.yaml" --set epochs=3
# Each process reads the state of its own parameters only, of a checkpoint that another number of processes may have written.
for count in 2 3; do
  expect 0 'Resuming from' env TENON_LOG=debug timeout 60 "${mpi[@]}" -n $count "${run[@]}" "${data[@]}" "${adam[@]}" "${shard[@]}" \
    --set resume="$work/sharded/epoch-000001.yaml" --json "$work/resumed.jsonl" --set checkpoint.directory="$work/sharded_$count"
  mv "$work/out" "$work/read"
  expect 0 '' reads_parts $count "$work/read"
  expect 0 '' after 1 "$work/resumed.jsonl" "$work/whole.jsonl"
done
expect_same "$work/sharded_2/epoch-000002.safetensors" "$work/sharded/epoch-000002.safetensors"
# A checkpoint whose damage one process finds is taken by none.
mkdir "$work/damaged"
cp "$work"/sharded/* "$work/damaged"
damage "$work/damaged/epoch-000002.safetensors" optimizer/dense_1/kernel/m
shards=("${run[@]}" "${data[@]}" "${adam[@]}" "${shard[@]}")
again=(timeout 60 "${mpi[@]}" -n 2 "${shards[@]}")
expect 1 'damaged: tensor "optimizer/dense_1/kernel/m"' "${again[@]}" --set resume="$work/damaged/epoch-000002.yaml"
expect 0 "process 1: $work/damaged/epoch-000002.yaml: its weights: " "${again[@]}" --set resume=auto --set checkpoint.directory="$work/damaged" \
  --json "$work/resumed.jsonl"
expect 0 '' after 1 "$work/resumed.jsonl" "$work/whole.jsonl"
expect 1 ' loads epoch-00000' timeout 60 "${mpi[@]}" -n 1 "${shards[@]}" --set resume="$work/sharded/epoch-000001.yaml" : \
  -n 1 "${shards[@]}" --set resume="$work/sharded/epoch-000002.yaml"
expect 1 'none' timeout 60 "${mpi[@]}" -n 1 "${shards[@]}" --set resume="$work/sharded/epoch-000001.yaml" : \
  -n 1 "${shards[@]}"
# More processes than parameters: some have no optimizer state of their own.
expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n 3 "$tenon" train "$source/models/linear_regression/train.yaml" --set parallel.mode=data "${adam[@]}" \
  "${shard[@]}" --set epochs=2 --set checkpoint.directory="$work/few"
expect 1 "parallel.shard: 'optimizer' divides the optimizer state among ranks; expected at least 2 devices or processes, got 1" \
  "${run[@]}" --set 'parallel={mode: data, transport: mpi, shard: optimizer}'

# Compiled again, for another number of ranks too, and saved before the first step after a load.
for count in 2 3; do
  expect 0 "ranks: the same bits" timeout 60 "${mpi[@]}" -n $count "$ranks" "$work/ranks_$count"
done

# A batch with fewer samples than there are processes.
expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n 3 "${run[@]}" "${data[@]}" --set data.train_count=5 --set batch_size=2 --json "$work/few.jsonl"
expect 0 'test: loss: ' "${run[@]}" --set data.train_count=5 --set batch_size=2 --json "$work/few_one.jsonl"
expect 0 '' close "$work/few_one.jsonl" "$work/few.jsonl"
expect 0 'test: loss: ' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" "${two[@]}" --set data.train_count=5 --set batch_size=3 --json "$work/few.jsonl"
expect 0 'test: loss: ' "${run[@]}" --set data.train_count=5 --set batch_size=3 --json "$work/few_one.jsonl"
expect 0 '' close "$work/few_one.jsonl" "$work/few.jsonl"

# What differs is named, on every process, and no process is left.
differ() {
  expect 1 "$1" timeout 60 "${mpi[@]}" -n 1 "${run[@]}" "${data[@]}" : -n 1 "${run[@]}" "${data[@]}" "${@:2}"
}
differ "process 1 differs from process 0 in the seed: expected '1', got '7'" --set seed=7
differ 'process 1 differs from process 0 in the batches: expected ' --set batch_size=60
differ 'process 1 differs from process 0 in the data: expected ' --set data.train_count=599
differ 'process 1 differs from process 0 in the parameters: expected ' --set model.layers.1.dense.units=33
differ 'process 1 differs from process 0 in the optimizer: expected ' --set optimizer.learning_rate=0.06
differ 'rank 1 of 2' --set data.source=idx --data "$work/nowhere"

expect 0 'Memory on openblas:0' "$tenon" summary "$source/models/fashion_mnist/train.yaml" --set 'parallel={mode: data, transport: mpi}' --device openblas
expect 1 'parallel.timeout_s: expected a number of seconds from 1 to 1e6, or 0 for no limit, got 0.5' "${run[@]}" \
  --set 'parallel={mode: data, transport: mpi, timeout_s: 0.5}'
expect 1 "transport 'pigeon': there is no libtenon_transport_pigeon.so in" "${run[@]}" --set 'parallel={mode: data, transport: pigeon}'
expect 1 'use one of those that there are: mpi' "${run[@]}" --set 'parallel={mode: data, transport: pigeon}'
echo text >"$work/text.so"
expect 1 'the file is not a library' "${run[@]}" --set "parallel={mode: data, transport: $work/text.so}"
expect 1 'it does not export tenon_transport_query' "${run[@]}" \
  --set "parallel={mode: data, transport: $(dirname "$tenon")/../lib/tenon/backends/libtenon_backend_reference.so}"
expect 1 'expected a list of devices, or a transport, or mpirun' "${run[@]}" "${data[@]}"
expect 1 "parallel.shares: not available with a transport" "${run[@]}" "${two[@]}" --set parallel.mode=data --set parallel.transport=mpi --set 'parallel.shares=[2, 1]'
expect 0 'connects 1 process: to train with several, start them with its launcher: mpirun -n N' "${run[@]}" \
  --set 'parallel={mode: data, transport: mpi}'

expect 0 '2 processes of 1 thread' "$tenon" bench scaling --tiny --runs 2 --ranks 1,2 --mpirun "$mpirun --oversubscribe --bind-to none"

# Any process may be killed at any time, or be stopped: the others end within 40 s, and the checkpoints are whole.
long=(--set epochs=1000000 --set checkpoint.directory="$work/killed" --set checkpoint.keep=2 --set resume=auto)
lose_one() { # lose_one <signal> <text>
  "${mpi[@]}" -n 3 "${run[@]}" "${data[@]}" "${long[@]}" --set parallel.timeout_s=3 >"$work/log" 2>&1 </dev/null &
  local job=$! victim
  for _ in $(seq 200); do
    [ "$(pgrep -c -P "$job" -f 'tenon train')" -eq 3 ] && break
    sleep 0.1
  done
  sleep "1.$((RANDOM % 900 + 100))"
  victim=$(pgrep -P "$job" -f 'tenon train' | shuf -n 1)
  expect 0 '' kill "-$1" "$victim"
  for _ in $(seq 400); do
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1
  done
  if kill -0 "$job" 2>/dev/null; then
    echo "FAIL: mpirun still runs 40 s after process $victim got $1"
    failures=$((failures + 1))
    kill -KILL "$job"
  fi
  wait "$job"
  expect 0 '' test $? -ne 0
  expect 1 '' pgrep -f "checkpoint.directory=$work/killed"
  expect 0 "$2" cat "$work/log"
}
for _ in $(seq 2 "$kills"); do
  lose_one KILL ''
done
lose_one KILL "The last checkpoint is $work/killed/epoch-"
lose_one STOP 'has shown no sign of life for 3 s'
expect 0 "The last checkpoint is $work/killed/epoch-" cat "$work/log"
expect 0 'Resuming from' timeout 60 "${mpi[@]}" -n 2 "${run[@]}" "${data[@]}" "${long[@]}" --set epochs=1
finish
