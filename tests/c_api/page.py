#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the blocks of docs/c-api.md as one C program, runs it, and checks what it prints against numbers that are known.

  page.py --cc COMPILER --library FOLDER
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from math import exp
from pathlib import Path

from runtime_header import SOURCE


def numbers_of(text):
    return [float(x) for x in re.findall(r"[-+0-9.e]+", text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--library", required=True)
    arguments = parser.parse_args()
    blocks = re.findall(r"^```c\n(.*?)^```$", (SOURCE / "docs" / "c-api.md").read_text(), flags=re.S | re.M)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "page.c", Path(folder) / "page"
        source.write_text("\n".join(blocks))
        subprocess.run([arguments.cc, "-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/runtime",
                        f"-I{SOURCE}/plugins/abi", source, "-o", program, f"-L{arguments.library}", "-ltenon",
                        f"-Wl,-rpath,{arguments.library}"], check=True)
        done = subprocess.run([program], cwd=folder, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}")
    softmax, gradient, history = (numbers_of(" ".join(done.stdout.splitlines()[0:2])), numbers_of(" ".join(done.stdout.splitlines()[2:4])),
                                  json.loads(done.stdout.splitlines()[4]))
    small = 1 / (1 + exp(1))
    if any(abs(got - expected) > 1e-5 for got, expected in zip(softmax, [small, 1 - small] * 2, strict=True)):
        sys.exit(f"softmax: got {softmax}")
    if gradient != [2, 4, 6, 8]:
        sys.exit(f"gradient: got {gradient}")
    if len(history["epochs"]) != 3 or history["epochs"][2]["logs"]["val_accuracy"] < 0.8:
        sys.exit("the model has not learned")
    return 0


if __name__ == "__main__":
    sys.exit(main())
