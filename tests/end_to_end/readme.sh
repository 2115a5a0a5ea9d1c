#!/usr/bin/env bash
# readme.sh <build directory> <source directory>: the code and commands of the README work.
build=$1 source=$2
. "$(dirname "$0")/expect.sh"
cd "$source" || exit 1

# The C++ program is the one that the tests build.
awk '/^```cpp/ { on = 1; next } /^```/ { on = 0 } on' README.md >"$work/readme.cpp"
expect_same "$work/readme.cpp" tests/end_to_end/quickstart.cpp
expect 0 '4 10 18' "$build/bin/quickstart"

# Run every line of the shell blocks that calls the built command line.
grep -E '^build/release/bin/tenon ' README.md >"$work/lines"
while IFS= read -r line; do
  expect 0 '' bash -c "${line/#build\/release/$build}"
done <"$work/lines"
expect 0 '9' wc -l "$work/lines"
finish
