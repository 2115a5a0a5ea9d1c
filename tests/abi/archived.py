#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what a release archived with what is built today, or the reverse. The kit judges plugins by its core profile; the core is a part of it.

  archived.py plugin RELEASE gcc|clang NAME KIT   today's kit on an archived plugin. RELEASE: archive/<version>; KIT: tenon-conformance
  archived.py kit RELEASE PLUGIN                  the archived kit on a plugin of today
  archived.py program RELEASE LIBRARY MODEL       the archived program on the C API with today's library
  archived.py library RELEASE BACKENDS MODEL      the archived program and library with the folder of today's backends
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


def command_of(side, release, scratch, given, environment):
    """The command line. Sets in the environment where libraries are."""
    if side == "plugin":
        compiler, name, kit = given
        return [kit, *KIT, archive.unpacked(release / compiler, scratch) / f"libtenon_backend_{name}.so"]
    if side == "kit":
        return [archive.unpacked(release / "runtime", scratch) / "lib/tenon/tenon-conformance", *KIT, given[0]]
    where, model = given
    if side == "program":
        environment["LD_LIBRARY_PATH"] = str(Path(where).parent)
    else:
        environment["LD_LIBRARY_PATH"] = str(archive.unpacked(release / "runtime", scratch / "runtime") / "lib")
        environment["TENON_BACKEND_PATH"] = where
    return [archive.unpacked(release / "program", scratch / "program") / "train_mnist", model]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("plugin", "kit", "program", "library"))
    parser.add_argument("release", type=Path)
    parser.add_argument("given", nargs="+")
    arguments = parser.parse_args()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TENON_", "LD_LIBRARY_PATH"))}
    environment["TENON_TEST_SIZE"] = "small"
    with tempfile.TemporaryDirectory() as scratch:
        command = command_of(arguments.side, arguments.release, Path(scratch), arguments.given, environment)
        done = archive.run(command, env=environment, cwd=scratch)
    print(done.stdout, done.stderr, sep="")
    if done.returncode and "opencl" in arguments.given[0] and "DEVICE_NOT_FOUND" in done.stdout + done.stderr:
        archive.skip("there is no OpenCL device here")
    if done.returncode:
        sys.exit(f"expected success, got exit code {done.returncode}")
    if arguments.side in ("plugin", "kit") and not PASSED.search(done.stdout):
        sys.exit("expected passes and no fail")


if __name__ == "__main__":
    main()
