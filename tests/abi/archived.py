#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what a release archived with what is built today, or the reverse. The kit judges plugins by its core profile.

  archived.py plugin FOLDER NAME KIT         today's kit on an archived plugin. FOLDER: archive/<version>/gcc or clang; KIT: tenon-conformance
  archived.py core FOLDER PLUGIN             the archived library and kit on a plugin of today. FOLDER: archive/<version>/runtime
  archived.py program FOLDER LIBRARY MODEL   an archived program on the C API with today's library. FOLDER: archive/<version>/program
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
        name, kit = given
        return [kit, *KIT, folder / f"libtenon_backend_{name}.so"]
    if side == "core":
        environment["LD_LIBRARY_PATH"] = str(folder / "lib")
        return [folder / "lib/tenon/tenon-conformance", *KIT, given[0]]
    library, model = given
    environment["LD_LIBRARY_PATH"] = str(Path(library).parent)
    return [folder / "train_mnist", model]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("plugin", "core", "program"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("given", nargs="+")
    arguments = parser.parse_args()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TENON_", "LD_LIBRARY_PATH"))}
    environment["TENON_TEST_SIZE"] = "small"
    with tempfile.TemporaryDirectory() as scratch:
        folder = archive.unpacked(arguments.folder, Path(scratch) / "archived")
        command = command_of(arguments.side, folder, arguments.given, environment)
        done = archive.run(command, env=environment, cwd=scratch)
    print(done.stdout, done.stderr, sep="")
    if "DEVICE_NOT_FOUND" in done.stdout + done.stderr:
        archive.skip("the plugin has no device here")
    if done.returncode:
        sys.exit(f"expected success, got exit code {done.returncode}")
    if arguments.side != "program" and not PASSED.search(done.stdout):
        sys.exit("expected passes and no fail")


if __name__ == "__main__":
    main()
