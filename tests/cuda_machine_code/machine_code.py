#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""machine_code.py CUOBJDUMP PLUGIN [ARCHITECTURE]: the registers, the static shared memory and the stack of each kernel of the cuda backend, from
its machine code (sm_90 unless told), compared with limits; and whether kernels that are bound by memory load and store 16 bytes with
one instruction.

- Registers of a thread: with 128 of them a multiprocessor has 512 threads at once, a quarter of what it can have.
- Static shared memory of a block, with 1 KB that CUDA reserves: with 27 KB a multiprocessor has 8 blocks at once. If they have 256 threads,
  that is all it can have.
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
    Limit("(9all_steps|14all_steps_back)I", "recurrent weights are in dynamic shared memory, of which a multiprocessor has room for one block; it has "
          "none for static shared memory. Sums of several units are in registers", registers=198, shared=1 * KB),
    Limit("(lines|gradients)_in_registersId", "lines of f64 are in registers, so that memory is read once", registers=222),
    Limit("(17rows_in_registers|14losses_of_rows)I", "rows of up to 32 elements a thread are in registers, so that memory is read once",
          registers=255),
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


# Kernels with packs of 16 bytes, which wait for memory most of all; and of each the least of instructions that load and store so many.
VECTORS = [
    ("map_denseILi4E.*9functions3AddE.*f", 2, 1),
    ("map_denseILi4E.*9functions4ReluE.*f", 1, 1),
    ("11run_programIfLb[01]ELi8E", 2, 1),
    ("11copy_pieces.*7Bytes16", 1, 1),
    ("8copy_all", 1, 1),
    ("15channel_columnsI.*15TrainStatisticsI.*8BFloat16.*Li8E", 2, 2),
    ("15channel_columnsI.*12GradientSumsI.*8BFloat16.*Li8E", 4, 2),
    ("12channel_rowsI.*9NormaliseI.*8BFloat16.*Li8E", 2, 2),
    ("15epilogue_kernelI.*8BFloat16.*Li8E", 1, 1),
    ("18lines_in_registersIf", 2, 1),
    ("22gradients_in_registersIf", 2, 1),
    ("11step_groupsI.*4AdamIf", 4, 3),
    ("11step_groupsI.*8MomentumIf", 3, 2),
]


def vector_accesses(cuobjdump, plugin, architecture, names):
    """Of each kernel, how many instructions load and how many store 16 bytes of global memory."""
    command = [cuobjdump, "--dump-sass", "--gpu-architecture", architecture, "--function", ",".join(names), plugin]
    dump = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)  # it warns of each file without them
    accesses = {}
    for line in dump.stdout.splitlines():
        if match := re.search(r"Function : (\S+)", line):
            counts = accesses[match[1]] = [0, 0]
        elif match := re.search(r"\b(LDG|STG)\.E\.(?:\S+\.)?128\b", line):
            counts[match[1] == "STG"] += 1
    return accesses


def check_vectors(cuobjdump, plugin, architecture, names):
    """The number of failures."""
    found = {pattern: [name for name in names if re.search(pattern, name)] for pattern, _, _ in VECTORS}
    accesses = vector_accesses(cuobjdump, plugin, architecture, sorted({name for of in found.values() for name in of}))
    failures = 0
    for pattern, min_loads, min_stores in VECTORS:
        if not found[pattern]:
            failures += 1
            print(f"no kernel is called {pattern}")
        for name in found[pattern]:
            loads, stores = accesses[name]
            if loads < min_loads or stores < min_stores:
                failures += 1
                print(f"{loads} loads and {stores} stores of 16 bytes, expected at least {min_loads} and {min_stores}: {name}")
    if failures == 0:
        print(f"{sum(map(len, found.values()))} kernels load and store 16 bytes with one instruction")
    return failures


def main():
    cuobjdump, plugin, architecture = (*sys.argv[1:], "sm_90")[:3]
    dump = subprocess.run([cuobjdump, "--dump-resource-usage", plugin], stdout=subprocess.PIPE, text=True, check=True)
    failures, names = 0, []
    largest = {limit.kernels: {"registers": 0, "shared": 0, "stack": 0} for limit in LIMITS}
    with_stack = dict.fromkeys(largest, 0)
    for name, resources in kernels_of(dump.stdout, architecture):
        names.append(name)
        limit = next(limit for limit in LIMITS if re.search(limit.kernels, name))
        with_stack[limit.kernels] += resources["stack"] > 0
        for what, value in resources.items():
            largest[limit.kernels][what] = max(value, largest[limit.kernels][what])
            if value > getattr(limit, what):
                failures += 1
                print(f"{what}: {value}, expected at most {getattr(limit, what)}: {name}")
    if not names:
        print(f"{plugin} has no machine code for {architecture}")
        return 1
    for limit in LIMITS:
        found = largest[limit.kernels]
        if found["registers"] == 0:
            failures += 1
            print(f"no kernel is called {limit.kernels}")
        print(f"at most {found['registers']} registers, {found['shared']} bytes of shared memory, {found['stack']} bytes of stack in "
              f"{with_stack[limit.kernels]} kernels: {limit.kernels or 'the others'}: {limit.reason}")
        if with_stack[limit.kernels] > limit.most:
            failures += 1
            print(f"{with_stack[limit.kernels]} kernels have a stack, expected at most {limit.most}")
    print(f"{sum(with_stack.values())} of {len(names)} kernels for {architecture} have a stack")
    failures += check_vectors(cuobjdump, plugin, architecture, names)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
