#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# driver.sh <tenon> <folder of the stub driver>: messages about the CUDA backend without a usable driver. The other backends keep working.
tenon=$1 stub=$2
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES

if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
  expect 0 'cuda: no NVIDIA driver (libcuda.so.1) was found' "$tenon" backends
  expect 0 'install a driver for CUDA' "$tenon" doctor
  expect 0 'CUDA devices: 0' "$tenon" devices --format cudatest
  expect 0 'cuda: no NVIDIA driver' "$tenon" devices --format cudatest
  expect 2 'cuda: no NVIDIA driver' "$tenon" devices --require gpu
fi

# with <version> <answer of cuInit> <command...>
with() { env LD_LIBRARY_PATH="$stub" STUB_DRIVER_VERSION="$1" STUB_DRIVER_INIT="$2" "${@:3}"; }
newest=99000 # newer than any build requires
expect 0 'cuda: the NVIDIA driver supports CUDA 11.2, this backend was built with CUDA ' with 11020 100 "$tenon" backends
expect 0 'update the driver' with 11020 100 "$tenon" doctor
expect 0 'an NVIDIA driver for CUDA ' with 11020 100 "$tenon" doctor
expect 0 'but it serves no GPU here' with "$newest" 100 "$tenon" backends
expect 0 '/dev/nvidia*' with "$newest" 304 "$tenon" backends
expect 0 'nvidia-fabricmanager' with "$newest" 802 "$tenon" backends
expect 0 'restart after an update' with "$newest" 803 "$tenon" backends
expect 0 'is a stub for linking' with "$newest" 34 "$tenon" backends
expect 0 'whether CUDA_VISIBLE_DEVICES hides it' with "$newest" 100 "$tenon" backends
expect 0 'openblas:0' with 11020 100 "$tenon" devices
expect 1 "device 'cuda:0' not found" with 11020 100 "$tenon" devices --device cuda:0
finish
