# SPDX-License-Identifier: Apache-2.0
"""The command `tenon` of an installed wheel: the command line of the distribution."""
import os
import sys


def main() -> None:
    """Becomes the program tenon, with the same arguments."""
    name = "tenon.exe" if sys.platform == "win32" else "tenon"
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.path.isfile(program):
        sys.exit(f"tenon: expected the program at {program}, where a wheel of tenon puts it: reinstall tenon")
    if sys.platform == "win32":  # there execv does not wait for the program
        import signal
        import subprocess
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which gets it, too
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, ["tenon", *sys.argv[1:]])
