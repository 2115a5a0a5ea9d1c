#!/usr/bin/env bash
# reference.sh <build directory> <source directory>: the pages in plugins/ are what the lists, rules and cases say today.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
expect 0 "$work/ops.md" "$build/bin/tenon" reference --out "$work"
expect_same "$work/ops.md" "$source/plugins/ops.md"
expect_same "$work/blas.md" "$source/plugins/blas.md"
expect 2 'no-such-folder' "$build/bin/tenon" reference --out "$work/no-such-folder"
[ "$failures" -eq 0 ] || echo "to bring the pages up to date: $build/bin/tenon reference --out $source/plugins"
finish
