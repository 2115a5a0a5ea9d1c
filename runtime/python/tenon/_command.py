# SPDX-License-Identifier: Apache-2.0
"""The command `tenon` of an installed wheel: the command line of the distribution."""
import os
import sys


def main() -> None:
    """Becomes the program tenon, with the same arguments."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tenon")
    if not os.path.isfile(program):
        sys.exit(f"tenon: expected the program at {program}, where a wheel of tenon puts it: reinstall tenon")
    os.execv(program, ["tenon", *sys.argv[1:]])
