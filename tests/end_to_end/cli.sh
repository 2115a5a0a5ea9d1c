#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cli.sh TEST - one test of the command line. Environment: TENON (the program), PLUGINS (folder of test plugins), CMAKE.
set -u
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset TENON_DEVICE TENON_CONFIG TENON_LOG TENON_BACKEND_PATH

fail() {
  echo "FAILED: $*"
  echo "--- standard output"; cat "$scratch/out"
  echo "--- standard error"; cat "$scratch/err"
  exit 1
}
# exits CODE tenon-arguments...: runs the program and keeps its output.
exits() {
  local expected=$1 got=0
  shift
  "$TENON" "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
  [ "$got" = "$expected" ] || fail "tenon $*: expected exit code $expected, got $got"
}
out_has() { grep -qF -- "$1" "$scratch/out" || fail "standard output has no '$1'"; }
out_lacks() { ! grep -qF -- "$1" "$scratch/out" || fail "standard output has '$1'"; }
err_has() { grep -qF -- "$1" "$scratch/err" || fail "standard error has no '$1'"; }
out_is() { printf "$1" | cmp -s - "$scratch/out" || fail "standard output is not:"$'\n'"$(printf "$1")"; }
# Only the CPU backends that are always built.
cpu_only=(--set 'backends.use=[openblas, reference]')

devices_lists_the_cpu_backends() {
  exits 0 devices "${cpu_only[@]}"
  out_has "memory nodes      node 0: CPUs"
  grep -qE '^  parallelism +(MIMD|one instruction stream): [0-9]+ threads?, SIMD in each: vectors of [0-9]+ bits' "$scratch/out" || fail 'no parallelism'
  out_has 'openblas:0'
  out_has 'reference:0'
  out_has '* openblas:0 (default)'
}

devices_json_keeps_its_schema() {
  exits 0 devices --format json --plugin "$PLUGINS/fake_gpu"
  "$CMAKE" -DJSON="$scratch/out" -DSCHEMA="$here/devices.schema.json" -P "$here/scripts/check_json.cmake" || exit 1
  out_has '"name": "openblas:0"'
  out_has '"name": "reference:0"'
  out_has '"name": "fake_gpu:1"'
  out_has '"identity": "0000:02:00.0"'
}

cudatest_without_a_gpu() {
  exits 0 devices --format cudatest "${cpu_only[@]}"
  [ "$(head -4 "$scratch/out")" = $'\nCUDA version: 0\nCUDA devices: 0' ] || fail 'other first lines'
  out_has 'No GPU'
  exits 2 devices --format cudatest "${cpu_only[@]}" --require gpu
  out_has 'CUDA devices: 0'
}

cudatest_says_why_a_gpu_backend_is_not_usable() {
  mkdir "$scratch/plugins"
  echo 'not a library' >"$scratch/plugins/libtenon_backend_cuda.so"
  exits 0 devices --format cudatest --plugin "$scratch/plugins" --set 'backends.use=[cuda, openblas]'
  out_has 'CUDA devices: 0'
  out_has 'cuda: '
}

cudatest_has_the_exact_lines() {
  exits 0 devices --format cudatest --require gpu --plugin "$PLUGINS/fake_gpu" --set 'backends.use=[fake_gpu, openblas]'
  out_is '\nCUDA version: 12040\nCUDA devices: 2\n\nDevice 0\n========\nName      :\t"Fake \\"One\\""\nClock Rate:\t1980000 kHz\nMemory    :\t150000000000 bytes\nCompute   : \t9.0\n\nDevice 1\n========\nName      :\t"Fake Two"\nClock Rate:\t1980001 kHz\nMemory    :\t150000000001 bytes\nCompute   : \t9.1\n\n'
}

a_missing_device_is_an_error() {
  exits 1 devices --device gpu:1 "${cpu_only[@]}"
  err_has "tenon: error: device 'gpu:1' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)"
  exits 1 explain "$MODELS/fashion_mnist/model.yaml" --device gpu:1 --config "$here/cpu_only.yaml"
  err_has "device 'gpu:1' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)"
  mkdir "$scratch/plugins"
  echo 'not a library' >"$scratch/plugins/libtenon_backend_broken.so"
  exits 1 explain "$MODELS/fashion_mnist/model.yaml" --device broken --plugin "$scratch/plugins"
  err_has "device 'broken' not found; available: "
  err_has "; backend 'broken' is not usable: "
}

the_command_line_beats_the_environment() {
  echo 'device: cpu:0' >"$scratch/tenon.yaml"
  exits 0 config print
  out_has 'device: auto'
  exits 0 config print --config "$scratch/tenon.yaml"
  grep -q '^device: "\?cpu:0"\? .*tenon.yaml:1' "$scratch/out" || fail 'the YAML does not beat the default'
  TENON_CONFIG="$scratch/tenon.yaml" exits 0 config print
  grep -q '^device: "\?cpu:0"\? .*tenon.yaml:1' "$scratch/out" || fail 'TENON_CONFIG is not read'
  TENON_DEVICE=reference exits 0 config print --config "$scratch/tenon.yaml"
  grep -q '^device: reference .*TENON_DEVICE' "$scratch/out" || fail 'the environment does not beat the YAML'
  TENON_DEVICE=reference exits 0 config print --config "$scratch/tenon.yaml" --device openblas
  grep -q '^device: openblas .*--device openblas' "$scratch/out" || fail 'the command line does not beat the environment'
  TENON_DEVICE=reference exits 0 devices "${cpu_only[@]}"
  out_has '* reference:0 (environment TENON_DEVICE'
}

names_of_devices_may_be_aliases() {
  local name
  for name in cpu CPU:1 reference reference:0 /device:CPU:1 /job:localhost/replica:0/task:0/device:cpu:1; do
    exits 0 devices --device "$name" "${cpu_only[@]}"
    if [ "$name" = cpu ]; then out_has '* openblas:0'; else out_has '* reference:0'; fi
  done
  exits 1 devices --device 'cpu:' "${cpu_only[@]}"
  err_has "'cpu:'"
}

backends_names_file_stage_and_reason() {
  mkdir "$scratch/plugins"
  echo 'not a library' >"$scratch/plugins/libtenon_backend_broken.so"
  exits 0 backends --plugin "$scratch/plugins"
  out_has "$scratch/plugins/libtenon_backend_broken.so"
  out_has 'not usable'
  out_has 'broken: '
  out_has 'remedy: '
  out_has "$scratch/plugins (command line): 1 candidate"
  out_has 'openblas:0'
  exits 0 backends --format json --plugin "$scratch/plugins"
  out_has '"state": "not usable"'
  out_has '"state": "healthy"'
}

doctor_survives_a_broken_file() {
  mkdir "$scratch/plugins"
  echo 'not a library' >"$scratch/plugins/libtenon_backend_broken.so"
  exits 1 doctor --plugin "$scratch/plugins"
  err_has 'tenon doctor: broken: broken'
  out_has '  broken: not usable'
  out_has "    file       $scratch/plugins/libtenon_backend_broken.so (command line)"
  out_has '    stage      found'
  out_has '    cause      INVALID_ARGUMENT: the file is not a library'
  out_has '    remedy     put a backend built for linux-'
  out_has '  openblas: healthy'
  out_has '    sha256     '
  out_has 'thread budget'
}

doctor_fails_when_nothing_is_healthy() {
  exits 1 doctor --set 'backends.allow=[nobody]'
  out_has '0 of '
  exits 1 devices --set 'backends.allow=[nobody]'
  err_has 'no healthy backend'
}

doctor_survives() { # plugin, expected text
  exits 1 doctor --timeout 2 --plugin "$PLUGINS/$1"
  out_has "$2"
  out_has 'deny: [misbehaving]'
  out_has '  openblas: healthy'
}
doctor_survives_a_crash_when_asked() {
  exits 1 doctor --plugin "$PLUGINS/asked_crash"
  out_has 'the plugin crashed (signal 11, Segmentation fault) while loading the library and calling its tenon_backend_query'
}
doctor_survives_a_crash_in_create() { doctor_survives created_crash 'the plugin crashed (signal 11, Segmentation fault) in its `create`'; }
doctor_survives_a_crash_at_the_end() { doctor_survives closed_crash 'the plugin crashed (signal 11, Segmentation fault) during shutdown'; }
doctor_survives_a_crash_at_exit() { doctor_survives ended_crash 'the plugin crashed (signal 11, Segmentation fault) after shutdown'; }
doctor_survives_an_exit() { doctor_survives created_exit 'the plugin exited the process (exit code 7) in its `create`'; }
doctor_survives_an_abort() { doctor_survives created_abort 'the plugin crashed (signal 6, Aborted) in its `create`'; }
doctor_survives_a_hang() { doctor_survives created_hang 'the plugin did not return within 2 s in its `create`'; }

# The output of a plugin is part of its record; it is not mixed with the report or written to standard error.
doctor_keeps_chatter_apart() {
  exits 1 doctor --plugin "$PLUGINS/created_abort"
  out_has '    output     vendor: giving up'
  ! grep -q '^vendor' "$scratch/out" || fail 'the plugin wrote between the lines'
  ! grep -q 'vendor' "$scratch/err" || fail 'the plugin wrote to standard error'
  exits 1 doctor --plugin "$PLUGINS/created_abort" --format json
  out_has '"output": "vendor: giving up'
}

doctor_requires_only_what_is_named() {
  exits 0 doctor --require openblas --plugin "$PLUGINS/created_crash"
  exits 1 doctor --require openblas --require misbehaving --plugin "$PLUGINS/created_crash"
  err_has 'tenon doctor: required and not healthy: misbehaving'
}

a_plugin_that_ends_the_process_does_not_stop_others() {
  local plugin
  for plugin in created_exit asked_crash; do
    TENON_BACKEND_PATH="$PLUGINS/$plugin" exits 0 devices --device openblas:0
    out_has '* openblas:0 (--device openblas:0)'
    err_has "warning: backend misbehaving ($PLUGINS/$plugin/libtenon_backend_misbehaving.so, TENON_BACKEND_PATH): not usable"
  done
}

a_training_file_cannot_name_backends() {
  printf 'model: {input: {shape: [8, 8]}, layers: [flatten, {dense: {units: 10}}]}\ndata: {source: digits}\nloss: mse\nbackends: {search: [.]}\n' >"$scratch/train.yaml"
  exits 1 summary "$scratch/train.yaml"
  err_has "train.yaml:4:20: key 'backends.search': decides which native code this process runs"
  exits 0 summary "$scratch/train.yaml" --trust
}

doctor_json_keeps_its_schema() {
  mkdir "$scratch/plugins"
  echo 'not a library' >"$scratch/plugins/libtenon_backend_broken.so"
  ln -s nowhere "$scratch/plugins/libtenon_backend_dangling.so"
  exits 1 doctor --format json --plugin "$scratch/plugins" --plugin "$PLUGINS/fake_gpu" --plugin "$PLUGINS/created_crash" \
    --plugin "$FAULTS/missing_library"
  python3 "$here/scripts/check_schema.py" "$here/doctor.schema.json" "$scratch/out" || exit 1
  out_has '"library": "libtenon_absent.so.1"'
  out_has '"code": "INCOMPATIBLE"'
  out_has 'the file is a symbolic link to nothing'
}

doctor_tells_of_a_device_that_does_not_open() {
  exits 0 doctor --plugin "$PLUGINS/fake_gpu"
  grep -qE '^threads +.* on CPUs? [0-9,-]+ of node [0-9]+' "$scratch/out" || fail 'doctor does not say where threads run'
  out_has '    warning    cannot open device fake_gpu:1: fake_gpu:1 has fallen off the bus (DEVICE_LOST)'
  exits 0 doctor --plugin "$PLUGINS/fake_gpu" --format json
  out_has '"identity": "0000:01:00.0"'
}

doctor_names_the_shadowed() {
  mkdir "$scratch/plugins"
  cp "$PLUGINS"/fake_gpu/*.so "$scratch/plugins/"
  exits 0 doctor --plugin "$PLUGINS/fake_gpu" --plugin "$scratch/plugins"
  out_has "another backend 'fake_gpu' was found first: $PLUGINS/fake_gpu/libtenon_backend_fake_gpu.so (command line)"
}

caps_states_ops_dtypes_and_features() {
  exits 0 caps
  grep -q '^MatMul-13 .*f32 f64' "$scratch/out" || fail 'no MatMul-13'
  out_has 'reference: BLAS of f32 f64: rotmg rotm dot '
  exits 0 caps --backend reference --format json
  out_has '"op": "Softmax"'
  out_has '"routine": "gemm"'
  out_lacks '"name": "openblas"'
  exits 0 caps --format markdown
  out_has '|---|---|'
  grep -q '^| Gemm-13 | .*f32 f64' "$scratch/out" || fail 'no Gemm-13'
  exits 1 caps --backend nobody
  err_has "backend 'nobody' not found"
}

config_check_names_file_line_and_key() {
  printf 'seed: 1\nprecison: tf32\n' >"$scratch/tenon.yaml"
  exits 1 config check "$scratch/tenon.yaml"
  err_has "tenon.yaml:2:1: unknown key 'precison'; did you mean 'precision'?"
  printf 'layers:\n  - dense: {unit: 1}\n' >"$scratch/model.yaml"
  exits 1 config check "$scratch/model.yaml"
  err_has "did you mean 'units'?"
  printf 'seed: 1\n' >"$scratch/tenon.yaml"
  exits 0 config check "$scratch/tenon.yaml"
  out_has 'a configuration that sets 1 key'
  exits 0 config check "$MODELS/fashion_mnist/model.yaml"
  out_has 'a model of 3 layers'
  exits 0 config check "$MODELS/fashion_mnist/train.yaml"
  out_has "a training run of the model 'fashion_mnist'"
  printf 'model: {layers: [flatten, dense: {units: 10}]}\ndata: {source: digits}\nloss: mse\noptimizer: adam\n' >"$scratch/unnamed.yaml"
  exits 0 config check "$scratch/unnamed.yaml"
  out_has "unnamed.yaml: a training run of a model of 2 layers, no errors"
  printf 'model: %s\ndata: {source: digits}\nloss: mse\nbackends: {search: [.]}\n' "$MODELS/fashion_mnist/model.yaml" >"$scratch/train.yaml"
  exits 1 config check "$scratch/train.yaml"
  err_has "train.yaml:4:20: key 'backends.search': decides which native code this process runs"
  exits 0 config check --trust "$scratch/train.yaml"
}

names_of_files_cannot_move_the_cursor() {
  printf 'name: "m\\x1b[2J"\ninput: {shape: [4]}\nlayers: [{dense: {units: 2, name: "l\\x1b]0;t\\x07"}}]\n' >"$scratch/model.yaml"
  for verb in summary explain 'explain --format json' 'config check'; do
    exits 0 $verb "$scratch/model.yaml"
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" "$scratch/out" "$scratch/err" || fail "$verb printed a control character"
  done
  exits 0 summary "$scratch/model.yaml"
  out_has 'l\u001b]0;t\u0007'
}

config_print_is_a_configuration() {
  exits 0 config print --set threads=3
  grep -q '^threads: 3 .*--set threads=3' "$scratch/out" || fail 'no origin'
  cp "$scratch/out" "$scratch/tenon.yaml"
  exits 0 config check "$scratch/tenon.yaml"
  exits 0 config print --schema
  cp "$scratch/out" "$scratch/tenon.yaml"
  exits 0 config check "$scratch/tenon.yaml"
  exits 1 config print --set colour=red
  err_has 'colour'
}

explain_places_every_node() {
  exits 0 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 --config "$here/cpu_only.yaml"
  out_has 'with a batch of 7'
  out_has 'openblas:0'
  out_has ' partition'
  exits 0 explain "$MODELS/linear_regression/train.yaml" --device reference --format json
  out_has '"device": "reference:0"'
  out_has '"batch_size": 32'
  out_lacks '"device": "openblas:0"'
}

explain_shows_an_onnx_file() {
  exits 0 export "$MODELS/fashion_mnist/model.yaml" --onnx "$scratch/net.onnx"
  exits 0 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}"
  out_has 'openblas:0'
  exits 0 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}" --format json
  python3 -m json.tool "$scratch/out" >/dev/null || fail 'expected JSON'
  exits 0 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}" --set precision=mixed_bfloat16 --format json
  out_has '"precision": "mixed_bfloat16"'
  exits 0 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}" --set precision=mixed_bfloat16
  out_has ' in mixed_bfloat16'
  exits 1 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}" --set precisio=tf32
  err_has "did you mean 'precision'"
  exits 0 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}" --format dot
  out_has 'digraph'
  exits 0 explain "$scratch/net.onnx" --shape x=4x28x28 "${cpu_only[@]}" --roofline
  out_has 'GFLOP/s'
  exits 1 explain "$scratch/net.onnx" --shape images=4x28x28 "${cpu_only[@]}"
  err_has "'images'"
  head -c 100 "$scratch/net.onnx" >"$scratch/cut.onnx"
  exits 1 explain "$scratch/cut.onnx" "${cpu_only[@]}"
  err_has 'cut.onnx'
}

log_device_placement_prints_devices_and_ops() {
  exits 0 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set log_device_placement=true --set epochs=1
  err_has $'Device mapping:\nopenblas:0 (cpu:0) -> '
  err_has 'reference:0 (cpu:1) -> '
  grep -q "^op MatMul 'dense/matmul' in device openblas:0 (MatMul" "$scratch/err" || fail 'no line for dense/matmul'
  grep -q "^op .* 'dense/.*' in device openblas:0 (no kernel of its own)$" "$scratch/err" || fail 'nothing is fused'
}

explain_marks_what_a_backend_lacks() {
  local template=(--plugin "$(dirname "$TENON")/../lib/tenon/examples" "${cpu_only[@]}" --set 'backends.use=[template, reference]')
  exits 1 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 "${template[@]}" --device template
  grep -q "^dense/matmul .* template:0 .* none .*; devices that can: reference:0$" "$scratch/out" || fail 'matmul not marked'
  grep -q "^dense/relu .* template:0 .* template:0" "$scratch/out" || fail 'no device for relu'
  out_has 'a run fails. Choose another --device'
  exits 1 train "$MODELS/fashion_mnist/train.yaml" --data /nowhere "${template[@]}" --device template --set data.source=digits --set data.train_count=64
  err_has 'cannot run on template:0'
  err_has '`tenon explain` shows each'
  exits 0 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 "${template[@]}" --device template --set fallback=warn
  [ "$(grep -c 'cannot run on the requested device' "$scratch/err")" = 1 ] || fail 'not one warning, of the nodes in the table'
}

explain_tells_kernels_and_copies() {
  exits 0 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 "${cpu_only[@]}" --set 'placement=[{match: "dense_1*", device: "reference:0"}]'
  grep -q '^copy dense/relu.*: openblas:0 -> reference:0, ' "$scratch/out" || fail 'no copy of dense/relu'
  exits 0 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 "${cpu_only[@]}" --format json
  out_has '"algorithm": "MatMul+bias+relu"'
  out_has '"copies": []'
}

explain_draws_the_graph() {
  exits 0 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 "${cpu_only[@]}" --format dot
  out_has 'digraph tenon {'
  out_has 'dense/matmul\n@openblas:0\n'
  out_has '[label="f32(7,128)"]'
  exits 0 explain "$MODELS/fashion_mnist/train.yaml" --batch 7 "${cpu_only[@]}" --format json
  out_has '"kind": "parameter"'
  out_has '"output_bytes": 3584'
}

explain_measures_a_roofline() {
  exits 0 explain "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --roofline
  out_has 'openblas:0: peak '
  grep -q '^dense gradient .* memory ' "$scratch/out" || fail 'no row for the gradient of dense'
  grep -q '^optimizer ' "$scratch/out" || fail 'no row for the optimizer'
  out_has '% of time'
  exits 0 explain "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --roofline --format json
  out_has '"percent_of_roof": '
  out_has '"gb_per_s": '
  exits 0 explain "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --peaks h100
  out_has 'Expected times, nothing was measured: NVIDIA H100'
  # 3,350 GB/s and 67 TFLOP/s are below 20 FLOP/byte bound by memory.
  out_has 'peak 67000.0 GFLOP/s of f32 and 3350.0 GB/s of memory; work below 20 FLOP/byte'
  exits 0 explain "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --peaks h200 --format json
  out_has '"expected_on": "h200"'
  exits 1 explain "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --peaks h1000
  err_has '--peaks h1000: expected a100, h100 or h200'
  exits 1 explain "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --roofline --format dot
  err_has '--roofline: expected --format text or json, got dot'
}

a_trace_is_written_by_train_and_when_it_fails() {
  exits 0 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set epochs=1 --trace "$scratch/trace.json"
  python3 - "$scratch/trace.json" <<'PYTHON' || fail 'the trace is not what Perfetto reads'
import json, sys
events = json.load(open(sys.argv[1]))['traceEvents']
names = {e['name'] for e in events if e['ph'] == 'X'}
assert {'run', 'wait for data', 'plan on openblas:0', 'dense/matmul'} <= names, names
assert any(n.startswith('gather ') for n in names), names
plans = {e['args']['correlation'] for e in events if e.get('cat') == 'plan'}
kernels = [e for e in events if e.get('cat') == 'kernel']
assert kernels and all(e['args']['correlation'] in plans and e['args']['algorithm'] for e in kernels)
assert any(e['ph'] == 'C' for e in events)
PYTHON
  exits 1 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set optimizer.learning_rate=1e30 --trace "$scratch/failed.json"
  grep -q '"cat":"kernel"' "$scratch/failed.json" || fail 'the trace of the failed run has no kernels'
  exits 1 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --trace "$scratch/no/such/folder.json"
  err_has "$scratch/no/such/folder.json"
}

a_memory_limit_is_an_error_with_numbers() {
  exits 1 train "$MODELS/fashion_mnist/train.yaml" "${cpu_only[@]}" --set data.source=digits --set data.train_count=160 \
    --set data.test_count=40 --set memory.limit_mb=1
  err_has "device 'openblas:0': out of memory"
  err_has 'of 1048576 are free'
  err_has 'memory.limit_mb: 1 MiB (--set memory.limit_mb=1)'
  exits 0 train "$MODELS/fashion_mnist/train.yaml" "${cpu_only[@]}" --set data.source=digits --set data.train_count=160 \
    --set data.test_count=40 --set epochs=1 --set memory.limit_mb=64 --set memory.growth=false
}

soft_placement_warns_once() {
  exits 0 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --device gpu:0 --set soft_placement=true --set epochs=1
  [ "$(grep -c 'soft_placement uses openblas:0 instead' "$scratch/err")" = 1 ] || fail 'not one warning'
}

wrong_use_exits_with_two() {
  exits 2 devices --format xml
  err_has '--format'
  exits 2 nonsense
  err_has "\`tenon\` has no command 'nonsense'; \`tenon --help\` lists them"
  exits 2 trian x.yaml
  err_has "\`tenon\` has no command 'trian'; did you mean 'train'?"
  exits 2 config chek x.yaml
  err_has "\`tenon config\` has no command 'chek'; did you mean 'check'?"
  exits 2 train x.yaml --devcie=cpu
  err_has "\`tenon train\` has no option '--devcie'; did you mean '--device'?"
  exits 2 --device cpu train x.yaml
  err_has "\`tenon\` has no option '--device'; write it after the command: \`tenon train --device\`"
  exits 2 train x.yaml -e 5
  err_has "\`tenon train\` has no option '-e'; \`tenon train --help\` lists them"
  exits 2 train x.yaml --set
  err_has "\`tenon train\`: --set: expected KEY=VALUE, got none; \`tenon train --help\` describes its options"
  exits 2 train x.yaml --set -k=3 --devcie cpu
  err_has "\`tenon train\` has no option '--devcie'; did you mean '--device'?"
  exits 2 train x.yaml -device cpu
  err_has "\`tenon train\` has no option '-device'; did you mean '--device'?"
  exits 2 --dveice cpu train x.yaml
  err_has "\`tenon\` has no option '--dveice'; options follow the command: \`tenon train --help\` lists them"
  exits 2 --backend x conformance
  err_has "\`tenon\` has no option '--backend'; options follow the command: \`tenon conformance --help\` lists them"
  exits 2 --threads 2 bench gemm
  err_has "\`tenon\` has no option '--threads'; options follow the command: \`tenon bench --help\` lists them"
  exits 2 --schema config print
  err_has "\`tenon\` has no option '--schema'; write it after the command: \`tenon config print --schema\`"
  exits 2 explain x.onnx --format xml
  err_has "\`tenon explain\`: --format: expected one of text, json, dot, got 'xml'; \`tenon explain --help\` describes its options"
  exits 2 explain x.onnx --batch 0
  err_has "\`tenon explain\`: --batch: expected a number above 0, got '0'"
  exits 2 explain x.onnx --batch=-1
  err_has "\`tenon explain\`: --batch: expected a number above 0, got '-1'"
  exits 2 demo --epochs 5000
  err_has "\`tenon demo\`: --epochs: expected a number from 1 to 1000, got '5000'"
  exits 2 export model.yaml
  err_has "\`tenon export\`: expected --onnx, got none"
  exits 2 doctor a
  err_has "\`tenon doctor\`: expected no further argument, got 'a'"
  exits 2
  err_has 'expected a command after `tenon`, got none; it is one of train, '
  exits 0 --version
  out_has 'tenon '
}

verbs_of_other_programs_are_verbs_of_tenon() {
  exits 2 bench gem
  err_has "\`tenon bench\` has no command 'gem'; did you mean 'gemm'?"
  exits 2 bench --threads 2 gemm
  err_has "\`tenon bench\` has no option '--threads'; write it after the command: \`tenon bench gemm --threads\`"
  exits 2 bench gemm --threads -1
  err_has "--threads: expected a number of at least 0, got '-1'"
  exits 1 bench gemm --tiny --set threads=1
  err_has '--set threads=1: expected --threads 1, which peers and roofs have, too'
  echo 'threads: 1' >"$scratch/threads.yaml"
  exits 1 bench gemm --tiny --config "$scratch/threads.yaml"
  err_has 'threads.yaml:1:10: expected --threads 1, which peers and roofs have, too'
  exits 1 bench nets --net AlexNet-X
  err_has "--net: expected a net, one of FCN-S, "
  err_has ", got 'AlexNet-X'"
  exits 1 bench nets --set layers --net L9
  err_has "--net: expected a net of --set layers, one of L1, L2, L3, L4, L5, got 'L9'; did you mean 'L"
  exits 1 bench nets --net L5 --precision bf16
  err_has "--precision bf16: key 'precision': expected one of float32"
  exits 1 bench compare "$scratch/none.json" "$scratch/none.json"
  err_has "$scratch/none.json: expected a report"
  exits 2 conformance --bakend openblas
  err_has "\`tenon conformance\` has no option '--bakend'; did you mean '--backend'?"
  exits 2 bandwith
  err_has "\`tenon\` has no command 'bandwith'; did you mean 'bandwidth'?"
  exits 1 conformance --backend nobody
  err_has 'nobody'
  exits 0 --help bench
  out_has 'tenon bench'
  mkdir "$scratch/bin"
  cp "$TENON" "$scratch/bin/"
  TENON="$scratch/bin/tenon" exits 1 bench gemm --help
  err_has "tenon: error: \`tenon bench\` is the program $scratch/lib/tenon/tenon-bench, which cannot be started: No such file or directory; install"
}

full() { # tenon-arguments...: standard output is a full disk
  local got=0
  : >"$scratch/out"
  "$TENON" "$@" >/dev/full 2>"$scratch/err" || got=$?
  [ "$got" = 1 ] || fail "tenon $* on a full disk: expected exit code 1, got $got"
  err_has 'standard output: cannot be written: No space left on device'
}
a_full_disk_is_an_error_for_every_verb() {
  exits 0 --help
  local verb verbs
  verbs=$(sed -n '/^Subcommands:/,$p' "$scratch/out" | awk '/^  [a-z]/ { print $1 }')
  [ "$(wc -w <<<"$verbs")" -gt 12 ] || fail 'not all verbs are listed'
  for verb in $verbs; do full "$verb" --help; done
  full --version
  full devices
  full backends --format json
  full caps
  full config print
  full config check "$MODELS/fashion_mnist/model.yaml"
  full conformance --list
  full summary "$MODELS/fashion_mnist/model.yaml"
  full train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set epochs=1
  exits 1 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set epochs=1 --json /dev/full
  err_has '/dev/full: writing '
}

closed_standard_streams_are_not_taken_by_files() {
  "$TENON" train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set epochs=1 --json "$scratch/out" <&- >&- 2>&- ||
    fail 'does not run with closed streams'
  ! grep -v '^{.*}$' "$scratch/out" || fail 'other text is in the JSON Lines'
  out_has '"epoch"'
}

devices_and_planted_links_survive_as_outputs() {
  exits 0 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set epochs=1 --curves /dev/null --trace /dev/null
  [ -c /dev/null ] || fail '/dev/null was replaced'
  exits 0 train "$MODELS/linear_regression/train.yaml" "${cpu_only[@]}" --set epochs=1 --json /dev/stdout
  out_has '{"epoch"'
  out_has 'test: '
}

little_memory_or_stack_is_an_error_with_its_remedy() {
  # A sanitizer's own memory does not fit.
  (ulimit -v 150000 && "$TENON" --version >/dev/null 2>&1) || return 0
  for size in 20 64; do # with less even ls crashes
    (ulimit -s $size && exits 1 devices && err_has "the stack limit is $size KiB, expected at least 256; raise it with \`ulimit -s 8192\`") || exit 1
  done
  (ulimit -v 150000 && exits 1 train "$MODELS/fashion_mnist/train.yaml" "${cpu_only[@]}" --set data.source=digits --set data.train_count=64 \
    --set data.test_count=32 --set threads=1 && err_has 'out of memory') || exit 1
}

"$1"
