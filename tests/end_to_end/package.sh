#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# package.sh <build directory> <source directory>: the archive is complete and runs from any folder.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH
skip_if_sanitized "$build" "a build with a sanitizer is not for shipping"

expect 0 'MB' "$source/tools/package" --build "$build" --out "$work"
archive=$(echo "$work"/tenon-*-linux-*.tar.gz)
mkdir "$work/unpacked"
expect 0 '' tar -xzf "$archive" -C "$work/unpacked"
tree=$(echo "$work"/unpacked/tenon-*)
expect 0 'openblas:0' "$tree/bin/tenon" devices
expect 0 'test: loss: ' "$tree/bin/tenon" train "$tree/share/tenon/models/linear_regression/train.yaml"
expect 0 '' test "$(stat -c %s "$archive")" -lt 50000000
# Bundled libraries come with their licences.
expect 0 '' bash -c "ls '$tree'/share/doc/tenon/third_party/*"
finish
