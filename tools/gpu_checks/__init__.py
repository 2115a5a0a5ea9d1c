# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/run-gpu-checks, which tools/package copies with it into the bundle. They use Python's standard library only.

checks      the checks: their commands, time limits and order
runner      runs the commands of a check
process     a program with a time limit
budget      how long a check may take of the time of all
resume      what an earlier call has done, and what is still to do
results     summary.json
reports     text, JUnit and figures from what the test programs write
archive     the .tar.gz of all results
machine     facts about the machine, the backend's devices, a Python with PyTorch
libraries   where CUDA's libraries are
"""
