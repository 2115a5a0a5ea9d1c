# Sourced by the scripts beside it: run commands, compare what they print and return.
set -u
failures=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect <exit code> <text that must appear, or ''> <command...>
expect() {
  local wanted=$1 text=$2
  shift 2
  "$@" >"$work/out" 2>&1 </dev/null
  local got=$?
  if [ "$got" -ne "$wanted" ]; then
    echo "FAIL: exit code $got, wanted $wanted: $*"
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

# expect_same <file> <file>
expect_same() {
  if cmp -s "$1" "$2"; then echo "ok: $1 equals $2"; else echo "FAIL: $1 and $2 differ"; failures=$((failures + 1)); fi
}

finish() {
  echo "$failures failures"
  [ "$failures" -eq 0 ]
  exit
}
