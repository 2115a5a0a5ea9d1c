#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stack_frames.py CUOBJDUMP PLUGIN [ARCHITECTURE]: which kernels of the cuda backend have a stack frame in their machine code (sm_90 unless
told). A stack is in memory: a kernel that has one indexes a local array by something that is no constant, spills registers, or calls a function
that does. The limits are what there is today. They are for optimised code: a build without machine code, or without optimisation, fails."""
import collections
import re
import subprocess
import sys

# What is in a mangled name of a kernel: the most of them that may have a stack, and why they have it.
LIMITS = {
    "11run_programIfLb1ELi8ELb1E": (
        1, "the interpreter of f32 programs with transcendental functions, 8 elements a thread and all operands read ahead: 24 bytes of registers "
           "are saved, because 3 blocks on a multiprocessor with these are faster than 2 without (elementwise_program.cu)"),
    "15channel_columnsI.*15TrainStatisticsINS.*8BFloat16": (
        1, "statistics of batch normalisation in bf16 with the pass in one kernel: 8 bytes, because a third block on a multiprocessor is needed "
           "for loads in flight (resident_blocks in channels.cuh)"),
}


def main():
    cuobjdump, plugin, architecture = (*sys.argv[1:], "sm_90")[:3]
    dump = subprocess.run([cuobjdump, "--dump-resource-usage", plugin], stdout=subprocess.PIPE, text=True, check=True)
    kernels = with_stack = 0
    of_class = collections.defaultdict(list)
    wanted, name = False, ""
    for line in dump.stdout.splitlines():
        if line.startswith("arch = "):
            wanted = line.split()[-1] == architecture
        elif match := re.search(r"Function (\S+):", line):
            name = match[1]
        elif wanted and (match := re.search(r"\bSTACK:(\d+)", line)):
            kernels += 1
            if int(match[1]) > 0:
                with_stack += 1
                of_class[next((of for of in LIMITS if re.search(of, name)), "")].append(f"{match[1]} bytes: {name}")
    if kernels == 0:
        print(f"{plugin} has no machine code for {architecture}")
        return 1
    failures = 0
    for of, (most, reason) in LIMITS.items():
        found = of_class.pop(of, [])
        failures += len(found) > most
        print(f"{len(found)} of at most {most}: {reason}")
        if len(found) > most:
            print("\n".join(found))
    for found in of_class.values():
        failures += 1
        print(f"{len(found)} kernels have a stack without a reason:", *found, sep="\n")
    print(f"{with_stack} of {kernels} kernels for {architecture} have a stack")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
