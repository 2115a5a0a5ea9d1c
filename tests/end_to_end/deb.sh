#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh <build directory> <source directory>: the Debian packages depend on each other, share no file, and unpacked together train a model.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH
skip_if_sanitized "$build" "a build with a sanitizer is not for shipping"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-shlibdeps not found; tools/setup installs it"

expect 0 'libtenon1_' "$source/tools/package" --deb --build "$build" --out "$work/deb"
field() { dpkg-deb --field "$work"/deb/"$1"_*.deb "$2"; }
expect 0 'tenon-backends (= ' field tenon Depends
expect 0 'libyaml-cpp' field libtenon1 Depends
expect 0 'libtenon1 (= ' field libtenon-dev Depends
# A file in two packages could not be installed.
for package in "$work"/deb/*.deb; do dpkg-deb --contents "$package" | awk '!/\/$/ { print $6 }'; done | sort | uniq -d >"$work/twice"
expect 0 '' test ! -s "$work/twice"
for package in "$work"/deb/*.deb; do dpkg-deb --extract "$package" "$work/root"; done
# Packages have all that `cmake --install` writes.
cmake --install "$build" --prefix "$work/tree" >/dev/null
(cd "$work/tree" && find . ! -type d | sort) >"$work/installed"
(cd "$work/root/usr" && find . ! -type d | sort) >"$work/packaged"
expect 0 '' diff "$work/installed" "$work/packaged"
tree=$work/root/usr
expect 0 'openblas:0' "$tree/bin/tenon" devices
expect 0 'test: loss: ' "$tree/bin/tenon" train "$tree/share/tenon/models/linear_regression/train.yaml"
# What the images install is there; without a CUDA toolkit there is no tenon-backend-cuda.
for pattern in $(grep -hoE '[a-z0-9-]+_\*\.deb' "$source"/tools/docker/*Dockerfile | sort -u); do
  [[ $pattern == tenon-backend-cuda_* && ! -f $build/lib/tenon/backends/libtenon_backend_cuda.so ]] || expect 0 '' bash -c "test -f '$work/deb/'$pattern"
done
expect 0 '4' bash -c "grep -hoE '[a-z0-9-]+_\*\.deb' '$source'/tools/docker/*Dockerfile | sort -u | wc -l"
finish
