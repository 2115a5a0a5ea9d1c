#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one of netlib's BLAS testers on a backend through the drop-in BLAS.

  netlib.py FOLDER BACKEND TESTER PASSES PLUGINS

FOLDER contains our libblas.so.3; PLUGINS is searched for the backend, too. The testers are those of Debian's libblas-test. They always exit
with 0, so their output is checked.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def testers_folder():
    places = glob.glob("/usr/lib/*/blas/xblat1s")
    return Path(places[0]).parent if places else None


def input_of(folder, tester):
    fortran = re.fullmatch(r"xblat([123])([sdcz])", tester)
    cblas = re.fullmatch(r"x([sdcz])cblat([123])", tester)
    letter, level = (fortran[2], fortran[1]) if fortran else (cblas[1], cblas[2])
    if level == "1":
        return None
    return folder / (f"{letter}blat{level}.in" if fortran else f"{letter}in{level}")


def environment(backend, scratch, plugins=None):
    """The environment of this process without the user's settings, and with a configuration that allows only this backend."""
    config = Path(scratch) / "tenon.yaml"
    config.write_text(f"backends: {{use: [{backend}]{f', search: [{plugins}]' if plugins else ''}}}\ndevice: {backend}\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TENON_") and name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    return clean | {"TENON_CONFIG": str(config), "TENON_LOG": "info"}


def main():
    folder, backend, tester, passes, plugins = sys.argv[1:6]
    passes = int(passes)
    programs = testers_folder()
    if programs is None or not (programs / tester).exists():
        print(f"skipped: {tester} not found; tools/setup installs libblas-test")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        lines = input_of(programs, tester)
        with open(lines or os.devnull) as given:
            result = subprocess.run([programs / tester], stdin=given, capture_output=True, text=True, cwd=scratch,
                                    env=environment(backend, scratch, plugins) | {"LD_LIBRARY_PATH": folder})
        text = result.stdout + "".join(path.read_text() for path in Path(scratch).glob("*.out"))

    problems = []
    if result.returncode:
        problems.append(f"exit code {result.returncode}")
    if f"backend '{backend}' executes" not in result.stderr:
        problems.append(f"expected stderr to name the backend '{backend}'")
    bad = [line for line in text.splitlines() if re.search(r"FAIL|\*{5}|FATAL", line)]
    problems += bad
    found = text.count("PASS")
    if found != passes:
        problems.append(f"expected {passes} PASS lines, got {found}")
    if problems:
        print(*problems, "--- output of the tester", text, "--- standard error", result.stderr, sep="\n")
        return 1
    print(f"{tester} on {backend}: {found} PASS lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
