#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# new_backend.sh <prefix> <C compiler> <C++ compiler>: the project that `tenon new-backend` of the tree at <prefix> writes builds
# outside that tree with the printed commands, and passes the conformance kit.
prefix=$1 cc=$2 cxx=$3
. "$(dirname "$0")/expect.sh"
unset "${!TENON_@}" LD_LIBRARY_PATH
export TENON_TEST_SIZE=small # small operands; all cases run
tenon=$prefix/bin/tenon

# author <name> <language> <variable> <compiler>: writes a project into an empty folder and runs the printed commands.
author() {
  local name=$1 language=$2 variable=$3 compiler=$4 place="$work/a folder for $1" count=0 line
  mkdir "$place"
  cd "$place" || exit 1
  expect 0 "$name/build/libtenon_backend_$name.so" "$tenon" new-backend "$name" --language "$language"
  sed -n 's/^  //p' "$work/out" >"$work/commands"
  while IFS= read -r line; do
    expect 0 '' env "$variable=$compiler" bash -c "$line"
    cp "$work/out" "$work/out.$((count += 1))"
  done <"$work/commands"
  expect 0 '' test "$count" -eq 5
  expect 0 "$name" cat "$work/out.3"
  # Nothing fails in the profile core or in the full run; excluded cases are counted.
  expect 0 ' 0 fail, 0 unsupported, ' cat "$work/out.4"
  expect 0 ' 0 fail, 0 unsupported, ' cat "$work/out.5"
  expect 1 '' grep -q ' 0 excluded' "$work/out.5"
  expect 1 '' grep -q ' 0 pass' "$work/out.5"
  expect 0 '' bash -c "nm -D --defined-only '$name/build/libtenon_backend_$name.so' | awk '{ print \$NF }' | diff - <(echo tenon_backend_query)"
  cd "$work" || exit 1
}
author demo c CC "$cc"
author demo_sdk cpp CXX "$cxx"

# The C file and its conformance.yaml are the template under another name.
for file in template.c conformance.yaml; do
  sed 's/template/demo/g' "$prefix/share/tenon/template/$file" >"$work/same"
  expect_same "$work/same" "$work/a folder for demo/demo/${file/template/demo}"
done

# Wrong arguments are errors, and nothing is written.
expect 1 "invalid backend name 'Demo': expected lower-case letters" "$tenon" new-backend Demo
expect 1 "invalid backend name '9lives'" "$tenon" new-backend 9lives
expect 1 "'cpu' is a reserved name" "$tenon" new-backend cpu
expect 2 'rust' "$tenon" new-backend demo --language rust
expect 1 '' test -e "$work/demo"
mkdir "$work/there"
expect 1 'there already exists' "$tenon" new-backend there
expect 0 '' rmdir "$work/there" # still empty
expect 1 "new-backend: folder demo.c/demo cannot be created: Not a directory; choose another one with --out" \
  sh -c 'touch demo.c && "$1" new-backend demo --out demo.c' sh "$tenon"
expect 0 'elsewhere/other' "$tenon" new-backend other --out elsewhere
expect 0 '' test -f elsewhere/other/other.c
mkdir -p "$work/lonely/bin"
cp "$tenon" "$work/lonely/bin/"
expect 1 "cannot read the template $work/lonely/share/tenon/template/template.c" env LD_LIBRARY_PATH="$prefix/lib" "$work/lonely/bin/tenon" new-backend demo
finish
