#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what a release archived with what is built today, or the reverse. The kit judges plugins by its core profile; the core is a part of it.

  archived.py plugin FOLDER gcc|clang NAME KIT   today's kit on an archived plugin. FOLDER: what archive.py unpacked; KIT: tenon-conformance
  archived.py kit FOLDER PLUGIN                  the archived kit on a plugin of today
  archived.py program FOLDER LIBRARY MODEL       the archived program on the C API with today's library
  archived.py library FOLDER BACKENDS MODEL      the archived program and library with the folder of today's backends
"""
import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import archive

KIT = ["conformance", "--profile", "core", "--jobs", "1", "--plugin"]
PASSED = re.compile(r": ([1-9]\d*) pass, 0 fail, ")


def command_of(side, folder, given, environment):
    """The command line. Sets in the environment where libraries are."""
    if side == "plugin":
        compiler, name, kit = given
        return [kit, *KIT, folder / compiler / f"libtenon_backend_{name}.so"]
    if side == "kit":
        return [folder / "runtime/lib/tenon/tenon-conformance", *KIT, given[0]]
    where, model = given
    environment["LD_LIBRARY_PATH"] = str(Path(where).parent if side == "program" else folder / "runtime/lib")
    if side == "library":
        environment["TENON_BACKEND_PATH"] = where
    return [folder / "program/train_mnist", model]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("plugin", "kit", "program", "library"))
    parser.add_argument("folder", type=lambda text: Path(text).resolve())
    parser.add_argument("given", nargs="+")
    arguments = parser.parse_args()
    archive.skip_elsewhere()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TENON_", "LD_LIBRARY_PATH"))}
    environment["TENON_TEST_SIZE"] = "small"
    with tempfile.TemporaryDirectory() as scratch:
        done = archive.run(command_of(arguments.side, arguments.folder, arguments.given, environment), env=environment, cwd=scratch)
    print(done.stdout, done.stderr, sep="")
    if done.returncode and "opencl" in arguments.given[0] and "DEVICE_NOT_FOUND" in done.stdout + done.stderr:
        archive.skip("there is no OpenCL device here")
    if done.returncode:
        sys.exit(f"expected success, got exit code {done.returncode}")
    if arguments.side in ("plugin", "kit") and not PASSED.search(done.stdout):
        sys.exit("expected passes and no fail")


if __name__ == "__main__":
    main()
