#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""resources.py CUOBJDUMP PLUGIN [ARCHITECTURE]: the registers, the static shared memory and the stack of each kernel of the cuda backend, from
its machine code (sm_90 unless told), compared with limits.

- Registers of a thread: with 128 of them a multiprocessor has 512 threads at once, a quarter of what it can have.
- Static shared memory of a block: with 27 KB a multiprocessor has 8 blocks at once. If they have 256 threads, that is all it can have.
- A stack is in memory: a kernel that has one indexes a local array by something that is no constant, spills registers, or calls a function
  that does.

A kernel that needs more is in LIMITS with the reason. The limits are for optimised code: a build without machine code, or without
optimisation, fails."""
import dataclasses
import re
import subprocess
import sys

KB = 1 << 10


@dataclasses.dataclass
class Limit:
    kernels: str           # in their mangled names, a regular expression
    reason: str
    registers: int = 128   # of a thread
    shared: int = 27 * KB  # bytes of a block, without what launches add
    stack: int = 0         # bytes of a thread
    most: int = 1000       # kernels that may have the stack


# The first that fits a kernel is its limit.
LIMITS = [
    Limit("11run_programIfLb1ELi8ELb1E", "the interpreter of f32 programs with transcendental functions, 8 elements a thread and all operands read "
          "ahead: some registers are saved, because 3 blocks on a multiprocessor with these are faster than 2 without (elementwise_program.cu)",
          shared=33 * KB, stack=24, most=1),
    Limit("11run_program", "the values of programs are in shared memory", shared=33 * KB),
    Limit("15channel_columnsI.*15TrainStatisticsINS.*8BFloat16", "statistics of batch normalisation in bf16 with the pass in one kernel: a third "
          "block on a multiprocessor is needed for loads in flight (resident_blocks)", shared=29 * KB, stack=8, most=1),
    Limit("15channel_columnsI.*15TrainStatistics", "8 sums of each thread of a block, which are added in a fixed order", shared=29 * KB),
    Limit("15attend_gradient", "tiles of two operands are in shared memory, up to two panels of sums in registers", registers=208, shared=43 * KB),
    Limit("6attend", "tiles of queries, keys and values are in shared memory, up to two panels of sums in registers", registers=196, shared=43 * KB),
    Limit("14small_products", "panels of both operands are in shared memory", shared=37 * KB),
    Limit("(9all_steps|14all_steps_back)I", "recurrent weights are in shared memory, of which a multiprocessor has room for one block, and sums of several units in "
          "registers", registers=198),
    Limit("(lines|gradients)_in_registersId", "lines of f64 are in registers, so that memory is read once", registers=222),
    Limit("", "all others"),
]


def kernels_of(dump, architecture):
    """Name and resources of each kernel of an architecture in the output of cuobjdump --dump-resource-usage."""
    wanted, name = False, ""
    for line in dump.splitlines():
        if line.startswith("arch = "):
            wanted = line.split()[-1] == architecture
        elif match := re.search(r"Function (\S+):", line):
            name = match[1]
        elif wanted and (match := re.search(r"\bREG:(\d+) STACK:(\d+) SHARED:(\d+)", line)):
            registers, stack, shared = map(int, match.groups())
            yield name, {"registers": registers, "shared": shared, "stack": stack}


def main():
    cuobjdump, plugin, architecture = (*sys.argv[1:], "sm_90")[:3]
    dump = subprocess.run([cuobjdump, "--dump-resource-usage", plugin], stdout=subprocess.PIPE, text=True, check=True)
    failures = kernels = 0
    largest = {limit.kernels: {"registers": 0, "shared": 0, "stack": 0} for limit in LIMITS}
    with_stack = dict.fromkeys(largest, 0)
    for name, resources in kernels_of(dump.stdout, architecture):
        kernels += 1
        limit = next(limit for limit in LIMITS if re.search(limit.kernels, name))
        with_stack[limit.kernels] += resources["stack"] > 0
        for what, value in resources.items():
            largest[limit.kernels][what] = max(value, largest[limit.kernels][what])
            if value > getattr(limit, what):
                failures += 1
                print(f"{what}: {value}, expected at most {getattr(limit, what)}: {name}")
    if kernels == 0:
        print(f"{plugin} has no machine code for {architecture}")
        return 1
    for limit in LIMITS:
        found = largest[limit.kernels]
        print(f"at most {found['registers']} registers, {found['shared']} bytes of shared memory, {found['stack']} bytes of stack in "
              f"{with_stack[limit.kernels]} kernels: {limit.kernels or 'the others'}: {limit.reason}")
        if with_stack[limit.kernels] > limit.most:
            failures += 1
            print(f"{with_stack[limit.kernels]} kernels have a stack, expected at most {limit.most}")
    print(f"{sum(with_stack.values())} of {kernels} kernels for {architecture} have a stack")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
