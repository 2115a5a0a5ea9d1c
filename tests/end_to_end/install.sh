#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh <cmake> <build directory> <source directory> <C compiler> <C++ compiler>: an installed tree works after a move,
# for the command line, the C++ API (CMake and pkg-config) and authors of backends.
cmake=$1 build=$2 source=$3 cc=$4 cxx=$5
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH
export OCL_ICD_VENDORS=/nonexistent # an OpenCL driver would offer the CPU a second time
skip_if_sanitized "$build" "a sanitizer ties the libraries to executables built with it"

expect 0 '' "$cmake" --install "$build" --prefix "$work/first"
mkdir "$work/elsewhere"
mv "$work/first" "$work/elsewhere/tenon" # moved, not copied: nothing may depend on the original path
tree=$work/elsewhere/tenon

# The tree has all documented files, no internal header and no build path.
for file in bin/tenon lib/libtenon.so lib/libtenon_blas.so lib/tenon/blas/libblas.so.3 lib/libtenon_sdk.a lib/tenon/backends/libtenon_backend_reference.so lib/tenon/tenon-bench lib/tenon/tenon-conformance lib/tenon/tenon-probe lib/cmake/tenon/tenonConfig.cmake \
  lib/pkgconfig/tenon.pc include/tenon/tenon.h include/tenon/backend.h include/tenon/ops.def include/tenon/sdk/kernel.h \
  share/tenon/models/mnist_mlp/train.yaml share/tenon/template/template.c share/tenon/new_backend/cpp/backend.cpp share/doc/tenon/README.md share/doc/tenon/plugins.md \
  share/doc/tenon/ops.md share/doc/tenon/blas.md; do
  expect 0 '' test -e "$tree/$file"
done
expect 1 '' grep -rqE '#include "|<fmt/|<yaml-cpp|<nlohmann' "$tree/include" --include='*.h' --exclude=backend.h
expect 1 '' grep -rqF -e "$build" -e "$work/first" "$tree/lib/cmake" "$tree/lib/pkgconfig"
for file in "$tree"/bin/tenon "$tree"/lib/tenon/tenon-* "$tree"/lib/libtenon.so "$tree"/lib/libtenon_blas.so "$tree"/lib/tenon/blas/libblas.so.3 "$tree"/lib/tenon/backends/*.so; do
  expect 1 '' bash -c "readelf -d '$file' | grep -E 'RUNPATH|RPATH' | grep -qv 'ORIGIN'"
done

# The command line finds its backends in its own tree and trains.
expect 0 'reference:0' "$tree/bin/tenon" devices
expect 0 "$tree/lib/tenon/backends" "$tree/bin/tenon" backends
expect 0 "$tree/lib/tenon/backends" env PATH="$tree/bin:$PATH" tenon backends # argv[0] is no path
expect 1 '' bash -c "ldd '$tree/bin/tenon' | grep -q libtenon"
expect 0 'softmax/' "$tree/bin/tenon" conformance --list --backend reference --family softmax
expect 0 'L5' "$tree/bin/tenon" bench nets --set layers --net L5 --batch 1 --phase infer --tiny --runs 2
expect 0 'test: loss: ' "$tree/bin/tenon" train "$tree/share/tenon/models/linear_regression/train.yaml"

# The examples, built with CMake; the package finds no other packages.
expect 0 '' "$cmake" -S "$tree/share/tenon/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror'
expect 1 '' grep -qE '^(fmt|yaml-cpp|nlohmann_json|Boost|CLI11)_DIR' "$work/examples/CMakeCache.txt"
expect 0 '' "$cmake" --build "$work/examples" --parallel 2
run() { # <name> <exit code> <text...>: the example's output has every text
  local program=$work/examples/$1 code=$2 text
  shift 2
  "$program" >"$work/example" 2>&1 </dev/null
  expect 0 '' test $? -eq "$code"
  for text in "$@"; do expect 0 "$text" cat "$work/example"; done
}
run vector_product 0 'openblas:0: [4, 10, 18]' 'reference:0: [4, 10, 18]'
run gpu_check 1 'GPU device not found'
expect 0 'Found GPU at: fake_gpu:0' env TENON_BACKEND_PATH="$build/tests/end_to_end/plugins/fake_gpu" "$work/examples/gpu_check"
run device_list 0 'openblas:0 (cpu:0): ' 'reference:0 (cpu:1): '
run missing_device 0 \
  "DEVICE_NOT_FOUND: device 'gpu:7' not found; available: openblas:0 (cpu:0), reference:0 (cpu:1)"
run placement_log 0 $'[[14, 32],\n [32, 77]]' '1 copy between devices'
run blas_tour 0 'y = 1.06 + 1.96 x' 'gemm: argument 8, lda, is 2'
run linear_regression 0 'epoch 9: mse 0.000' 'test: mse 0.000'
run several_devices 0 'openblas:0: loss' 'openblas:1: loss'
expect 1 '' grep -q different "$work/example"
run data_parallel 0 'the same within 1e-5'
run classify_digits 0 'accuracy 0.9' 'predicted as a'
run prefetch 0 'train ends:   batch 5'
expect 0 '' awk '/read/ { read[$NF] = NR } /ends/ { ends[$NF] = NR }
  END { for (n = 0; n < 5; ++n) if (!(read[n + 1] < ends[n])) exit 1 }' "$work/example"

# With pkg-config.
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$tree/lib/pkgconfig
  expect 0 '' bash -c "'$cxx' -std=c++20 '$tree/share/tenon/examples/gpu_check.cpp' \$(pkg-config --cflags --libs tenon) \
    -Wl,-rpath,'$tree/lib' -o '$work/by_pkg_config'"
  expect 1 'GPU device not found' "$work/by_pkg_config"
else
  echo "not run: pkg-config not found; tools/setup installs it"
fi

# Authors: the C template with the header only, and the reference backend with one of its op families with the SDK.
expect 0 '' "$cmake" -S "$tree/share/tenon/template" -B "$work/template" -DTENON_INCLUDE_DIRECTORY="$tree/include" -DCMAKE_C_COMPILER="$cc"
expect 0 '' "$cmake" --build "$work/template"
expect 0 'template' "$tree/bin/tenon" backends --plugin "$work/template/libtenon_backend_template.so"
mkdir -p "$work/author/ops"
cp "$source/backends/reference/backend.cpp" "$source/backends/reference/map.h" "$work/author/"
cp "$source/backends/reference/ops/cast.cpp" "$work/author/ops/"
cat >"$work/author/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(author VERSION 7.8.9 LANGUAGES CXX)
find_package(tenon 1.0 REQUIRED COMPONENTS sdk)
tenon_add_backend(reference SOURCES backend.cpp)
END
expect 0 '' "$cmake" -S "$work/author" -B "$work/author/build" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_CXX_COMPILER="$cxx"
expect 0 '' "$cmake" --build "$work/author/build"
expect 0 '7.8.9' "$tree/bin/tenon" backends --plugin "$work/author/build/libtenon_backend_reference.so"
expect 0 'tenon_backend_query' nm -D --defined-only "$work/author/build/libtenon_backend_reference.so"
expect 0 '1' bash -c "nm -D --defined-only '$work/author/build/libtenon_backend_reference.so' | wc -l"

# A new project, with the printed commands.
expect 0 '' bash "$(dirname "$0")/new_backend.sh" "$tree" "$cc" "$cxx"

# A missing component is reported.
sed -i 's/COMPONENTS sdk/COMPONENTS kitchen/' "$work/author/CMakeLists.txt"
expect 1 "there is no component 'kitchen'; there are runtime, c, abi and sdk" "$cmake" -S "$work/author" -B "$work/author/other" \
  -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_CXX_COMPILER="$cxx"
finish
