#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme.sh <build directory> <source directory>: the code and commands of README.md and docs/ work.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
cd "$source" || exit 1

# program <page> <source> <program> <output>: the page's C++ blocks are the program that the tests build, apart from empty lines.
program() {
  awk '/^```cpp/ { on = 1; next } /^```/ { on = 0 } on && NF' "$1" >"$work/page.cpp"
  grep -v '^$' "$2" >"$work/source.cpp"
  expect_same "$work/page.cpp" "$work/source.cpp"
  expect 0 "$4" "$3"
}
program README.md tests/end_to_end/quickstart.cpp "$build/bin/quickstart" 'accuracy 0.'
program docs/cpp.md tests/end_to_end/tour.cpp "$build/bin/tour" 'third gradient 6'

# Run every command that calls the built command line; files go to a copy of the path build/release.
mkdir -p "$work/build"
sed -e ':join' -e '/\\$/ { N; s/\\\n *//; b join' -e '}' README.md docs/getting-started.md docs/zh/quick-start.md | grep -E '^build/release/bin/tenon ' | awk '!seen[$0]++' >"$work/lines"
while IFS= read -r line; do
  line=${line#build/release/}
  expect 0 '' bash -c "$build/${line//build\/release/$work/build}"
done <"$work/lines"
expect 0 '19' wc -l "$work/lines"

# The index lists every decision.
for decision in docs/adr/*.md; do expect 0 '' grep -qF "(adr/${decision##*/})" docs/README.md; done
finish
