#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bundle.sh <build directory> <source directory>: the bundle for a GPU machine is small, complete and relocatable, and its script reports
# correctly on a machine without a GPU.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH
skip_if_sanitized "$build" "a build with a sanitizer is not for shipping"
if [ ! -f "$build/lib/tenon/backends/libtenon_backend_cuda.so" ]; then skip "this build has no CUDA backend"; fi

expect 0 'MB' "$source/tools/package" --bundle --build "$build" --out "$work"
archive=$(echo "$work"/tenon-*-gpu.tar.xz)

mkdir "$work/elsewhere"
expect 0 '' tar -xJf "$archive" -C "$work/elsewhere"
tree=$(echo "$work"/elsewhere/tenon-*-gpu)
mv "$work/bundle" "$work/elsewhere/moved" # nothing is at its original path any more

# Every run path begins with $ORIGIN, and every needed library is in the bundle or part of any system. A transport uses the MPI library of its
# machine.
provided='^(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux-[a-z0-9-]+)\.so'
problems=$(
  find "$tree/bin" "$tree/lib" -path "$tree/lib/tenon/transports" -prune -o -type f \( -name '*.so*' -o -perm -u+x \) -print | while read -r object; do
    readelf -d "$object" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2/p' | tr ':' '\n' | grep -vE '^\$ORIGIN(/\.\.)*(/lib)?$' |
      sed "s|^|run path of $object: |"
    readelf -d "$object" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r needed; do
      [[ $needed =~ $provided ]] || [ -n "$(find "$tree/lib" -name "$needed")" ] || echo "$object needs $needed"
    done
  done
)
expect 0 '' test -z "$problems"
expect 0 'reference:0' "$tree/bin/tenon" devices
expect 0 '"cuda_architectures"' /usr/bin/python3 -m json.tool "$tree/bundle.json"
expect 0 '"libnccl.so.2"' /usr/bin/python3 -m json.tool "$tree/bundle.json"

# Without a GPU, checks that need none run, and no other check passes.
export CUDA_VISIBLE_DEVICES=
expect 0 'no cuda device: ' "$tree/run-gpu-checks" --out "$work/none"
expect 0 'conformance_ops' "$tree/run-gpu-checks" --list
cat >"$work/states.py" <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1]))
states = {check["name"]: check["state"] for check in summary["checks"]}
assert states.pop("doctor") == states.pop("devices") == "pass", states
assert states and set(states.values()) == {"not run"}, states
assert all(check.get("reason") for check in summary["checks"] if check["state"] == "not run")
assert summary["machine"]["processors"] > 0 and summary["bundle"]["commit"] and summary["libraries"]
PYTHON
expect 0 '' /usr/bin/python3 "$work/states.py" "$work/none/summary.json"
expect 0 'CUDA devices: 0' cat "$work/none/devices.txt"

# Checks that run, with a CPU backend.
checks=("$tree/run-gpu-checks" --backend reference --tiny)
expect 0 'bench_gemm             pass' "${checks[@]}" --only conformance_core,bench_gemm --out "$work/some"
expect 0 '<testcase' cat "$work/some/conformance_core.junit.xml"
expect 0 ', 0 fail' cat "$work/some/conformance_core.txt"
expect 0 'ns' cat "$work/some/bench_gemm.json"
expect 1 '0 pass, 0 fail, 2 timeout' "${checks[@]}" --only 'conformance_core' --only devices --limit 0 --out "$work/late"
echo 'no list' >"$work/elsewhere/moved/lib/tenon/backends/libtenon_backend_reference.conformance.yaml"
expect 1 '1 pass, 1 fail' "${checks[@]}" --tree "$work/elsewhere/moved" --only conformance_core,bench_gemm --out "$work/failed"
# A short run: what the budget does not reach is not run, a check that did not end is repeated, and the archive is complete.
short=("${checks[@]}" --only devices,conformance_core --out "$work/short" --archive "$work/short.tar.gz" --jobs 2)
expect 0 '0 pass, 0 fail, 0 timeout, 2 not run' "${short[@]}" --budget 0
expect 1 '0 pass, 0 fail, 2 timeout' "${short[@]}" --limit 0 --resume
expect 0 '2 pass' "${short[@]}" --resume
expect 0 'short/conformance_core.junit.xml' tar -tzf "$work/short.tar.gz"
expect 2 'no such check' "${checks[@]}" --only nothing --out "$work/nothing"

# NVIDIA's libraries are found where they are installed, Python wheels included; missing ones are reported.
wheel=$work/venv/lib/python3.11/site-packages/nvidia/vendor/lib
mkdir -p "$wheel"
touch "$wheel/libtenon_vendor.so.7"
manifest() { echo "{\"vendor_libraries\": [\"$1\"], \"needs_glibc\": \"$2\"}" >"$work/elsewhere/moved/bundle.json"; }
found=(env VIRTUAL_ENV="$work/venv" "${checks[@]}" --tree "$work/elsewhere/moved" --only devices --out "$work/found")
manifest libtenon_vendor.so.7 2.0
expect 0 "$wheel/libtenon_vendor.so.7 (Python wheel)" "${found[@]}"
expect 0 "LD_LIBRARY_PATH    $wheel" "${found[@]}"
manifest libtenon_vendor.so.8 2.0
expect 0 "not found ($wheel/libtenon_vendor.so.7)" "${found[@]}"
manifest libtenon_vendor.so.7 99.0
expect 2 'the bundle needs glibc 99.0' "${found[@]}"
finish
