# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: runs commands, checks their output and exit codes.
set -u
failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect <exit code> <text that must appear, or ''> <command...>
expect() {
  local expected=$1 text=$2
  shift 2
  "$@" >"$work/out" 2>&1 </dev/null
  local got=$?
  if [ "$got" -ne "$expected" ]; then
    echo "FAIL: exit code $got, expected $expected: $*"
    sed 's/^/    /' "$work/out"
    failures=$((failures + 1))
  elif [ -n "$text" ] && ! grep -qF -- "$text" "$work/out"; then
    echo "FAIL: '$text' is not in the output of: $*"
    sed 's/^/    /' "$work/out"
    failures=$((failures + 1))
  else
    echo "ok: $*"
  fi
}

# skip <reason>
skip() {
  echo "skipped: $1"
  exit 77
}
# skip_if_sanitized <build directory> <reason>
skip_if_sanitized() {
  if grep -q '^TENON_SANITIZE:STRING=.' "$1/CMakeCache.txt"; then skip "$2"; fi
}

# expect_same <file> <file>
expect_same() {
  if cmp -s "$1" "$2"; then echo "ok: $1 equals $2"; else echo "FAIL: $1 and $2 differ"; failures=$((failures + 1)); fi
}

finish() {
  echo "$failures failures"
  [ "$failures" -eq 0 ]
  exit
}
