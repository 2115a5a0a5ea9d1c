#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hosts.sh <tenon> <source directory> <mpirun>: four processes on two hosts train as one process does. The hosts are network namespaces with
# addresses of their own, which only root can make.
tenon=$1 source=$2 mpirun=$3
. "$(dirname "$0")/expect.sh"
[ -n "$mpirun" ] || skip "mpirun is not installed: tools/setup"
for program in ip nsenter unshare; do command -v "$program" >/dev/null || skip "$program is not installed"; done
space=tenon$$
cleanup() {
  ip netns del "${space}a" 2>/dev/null
  ip netns del "${space}b" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT
ip netns add "${space}a" 2>/dev/null && ip netns add "${space}b" 2>/dev/null && unshare --uts true 2>/dev/null ||
  skip "network namespaces are forbidden here"
ip link add "${space:0:10}a" netns "${space}a" type veth peer name "${space:0:10}b" netns "${space}b" || skip "there are no virtual network devices here"
number=1
for host in a b; do
  ip -n "$space$host" addr add 10.231.57.$number/24 dev "${space:0:10}$host"
  ip -n "$space$host" link set "${space:0:10}$host" up
  ip -n "$space$host" link set lo up
  number=$((number + 1))
done
# What mpirun starts in place of ssh: agent <address> <command...>.
cat >"$work/agent" <<END
#!/bin/sh
case "\$1" in
  10.231.57.1) space=${space}a ;;
  10.231.57.2) space=${space}b ;;
  *) echo "agent: no host \$1" >&2; exit 1 ;;
esac
shift
exec nsenter --net=/run/netns/\$space unshare --uts sh -c "hostname \$space; \$*"
END
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run=("$tenon" train "$source/models/fashion_mnist/train.yaml" --set data.source=digits --set data.train_count=600 --set data.test_count=100
  --set model.layers.1.dense.units=32 --set epochs=2 --set batch_size=50 --set threads=1 --set optimizer.name=sgd
  --set optimizer.learning_rate=0.05 --device openblas)
on_hosts() { # on_hosts <hosts> <command...>
  local hosts=$1
  shift
  "$work/agent" 10.231.57.1 timeout 60 "$mpirun" --mca plm_rsh_agent "$work/agent" --mca oob_tcp_if_include 10.231.57.0/24 \
    --mca btl_tcp_if_include 10.231.57.0/24 --bind-to none --host "$hosts" "$@"
}

expect 0 'test: loss: ' "${run[@]}" --json "$work/one.jsonl"
expect 0 'on 4 processes' on_hosts 10.231.57.1:2,10.231.57.2:2 -n 4 "${run[@]}" --set parallel.mode=data --json "$work/four.jsonl"
expect 0 '' python3 -c 'import json, sys
a, b = [[event["loss"] for event in map(json.loads, open(file)) if "loss" in event] for file in sys.argv[1:]]
if len(a) != 3 or len(b) != 3 or any(abs(x - y) > 1e-5 for x, y in zip(a, b)): sys.exit(f"{a} and {b} differ")' "$work/one.jsonl" "$work/four.jsonl"
# A host that disappears is noticed on the other one, and no process stays on either. mpirun itself waits for its daemon there.
on_hosts 10.231.57.1:1,10.231.57.2:1 -n 2 "${run[@]}" --set parallel.mode=data --set parallel.timeout_s=3 --set epochs=1000000 \
  --set checkpoint.directory="$work/lost" --set checkpoint.keep=2 >"$work/log" 2>&1 </dev/null &
for _ in $(seq 200); do
  [ -e "$work/lost/epoch-000002.yaml" ] && break
  sleep 0.1
done
ip -n "${space}b" link set "${space:0:10}b" down
expect 0 '' timeout 40 bash -c "while pgrep -f '^$tenon train.*$work/lost' >/dev/null; do sleep 0.1; done"
tail -n 20 "$work/log" >"$work/end"
expect 0 "on host ${space}b has shown no sign of life for 3 s. The last checkpoint is $work/lost/epoch-" cat "$work/end"
pkill -KILL -f "$work/lost"
ip -n "${space}b" link set "${space:0:10}b" up
# The message of a host that cannot be reached is mpirun's.
expect 1 'agent: no host 10.231.57.9' on_hosts 10.231.57.1:1,10.231.57.9:1 -n 2 "${run[@]}" --set parallel.mode=data
finish
