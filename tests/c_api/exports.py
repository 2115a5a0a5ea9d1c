#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libtenon exports the functions that tenon/runtime.h declares, and no other C symbol: those of 1.0 under the version node of 1.0,
later ones under a node of their minor version.

  exports.py --core libtenon.so
"""
import argparse
import subprocess
import sys

from runtime_header import SOURCE, Header

NODE = "TENON_RUNTIME_1"
LAYOUT = SOURCE / "tests" / "abi" / "archive" / "1.0" / "c_api_layout.txt"


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
    first = {line.split()[1] for line in LAYOUT.read_text().splitlines() if line.startswith("signature ")}
    problems += [f"{name} has the version '{node}', expected {NODE}{'' if name in first else '_<minor>'}" for name, node in sorted(nodes.items())
                 if not (node == NODE if name in first else node.startswith(f"{NODE}_"))]
    print(f"{core}: {len(declared)} functions in tenon/runtime.h, {len(nodes)} C symbols")
    print(*(f"  {problem}\n" for problem in problems), sep="", end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
