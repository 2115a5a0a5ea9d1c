#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libtenon exports the functions that tenon/runtime.h declares, under the version node of the C API, and no other C symbol.

  exports.py --core libtenon.so
"""
import argparse
import subprocess
import sys

from runtime_header import Header

NODE = "TENON_RUNTIME_1"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", required=True)
    core = parser.parse_args().core
    lines = subprocess.run(["nm", "-D", "--defined-only", core], check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = [line.split()[-1] for line in lines]
    nodes = {symbol.split("@")[0]: symbol.rpartition("@")[2] for symbol in symbols
             if not symbol.startswith("_Z") and not symbol.startswith("TENON_")}
    declared = set(Header().functions)
    problems = [f"declared in tenon/runtime.h, not exported: {name}" for name in sorted(declared - nodes.keys())]
    problems += [f"exported, not declared in tenon/runtime.h: {name}" for name in sorted(nodes.keys() - declared)]
    problems += [f"{name} has the version '{node}', expected {NODE}" for name, node in sorted(nodes.items()) if node != NODE]
    print(f"{core}: {len(declared)} functions in tenon/runtime.h, {len(nodes)} C symbols")
    print(*(f"  {problem}\n" for problem in problems), sep="", end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
