#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# generate_docs.sh <build directory> <source directory>: the pages in plugins/ are up to date with the lists, rules and cases.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
expect 0 "$work/ops.md" "$build/bin/tenon" generate-docs --out "$work"
expect_same "$work/ops.md" "$source/plugins/ops.md"
expect_same "$work/blas.md" "$source/plugins/blas.md"
expect 2 'no-such-folder' "$build/bin/tenon" generate-docs --out "$work/no-such-folder"
[ "$failures" -eq 0 ] || echo "to bring the pages up to date: $build/bin/tenon generate-docs --out $source/plugins"
finish
