#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance kit's core profile over releases: today's kit on an archived plugin, or an archived kit on a plugin of today.

  archived.py plugin FOLDER NAME --kit PROGRAM     FOLDER: archive/<version>/gcc or clang; PROGRAM: tenon-conformance of this build
  archived.py core FOLDER PLUGIN                   FOLDER: archive/<version>/runtime, with library and kit
"""
import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import archive

PASSED = re.compile(r": ([1-9]\d*) pass, 0 fail, ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("plugin", "core"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("plugin", help="its name in the archive, or the file of today's")
    parser.add_argument("--kit", type=Path)
    arguments = parser.parse_args()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TENON_", "LD_LIBRARY_PATH"))}
    environment["TENON_TEST_SIZE"] = "small"
    with tempfile.TemporaryDirectory() as scratch:
        folder = archive.unpacked(arguments.folder, scratch)
        if arguments.side == "plugin":
            kit, plugin = arguments.kit, folder / f"libtenon_backend_{arguments.plugin}.so"
        else:
            kit, plugin = folder / "lib/tenon/tenon-conformance", arguments.plugin
            environment["LD_LIBRARY_PATH"] = str(folder / "lib")
        done = archive.run([kit, "conformance", "--plugin", plugin, "--profile", "core", "--jobs", "1"], env=environment)
    print(done.stdout, done.stderr, sep="")
    if "DEVICE_NOT_FOUND" in done.stdout + done.stderr:
        archive.skip("the plugin has no device here")
    if done.returncode or not PASSED.search(done.stdout):
        sys.exit(f"expected passes and no fail, got exit code {done.returncode}")


if __name__ == "__main__":
    main()
