#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Backends get their options through tenon_host.option: no source of a plugin reads or changes the environment.

Usage: environment.py [--root FOLDER] | --self-test
"""
import argparse
import pathlib
import re
import sys
import tempfile

FOLDERS = ["backends", "plugins/abi", "plugins/sdk", "plugins/template", "plugins/new_backend"]
SUFFIXES = {".h", ".c", ".cpp", ".cu", ".cuh"}
CALL = re.compile(r"\b(?:(?:secure_)?getenv|_dupenv_s|putenv|setenv|unsetenv|clearenv)\s*\(|\benviron\b")
# Files that may, and why.
ALLOWED = {"backends/opencl/device/process_guard.cpp": "removes the variables that drivers set"}
COMMENT = re.compile(r"//.*|/\*.*?\*/")


def findings(root):
    for path in sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in SUFFIXES):
        if path.relative_to(root).as_posix() in ALLOWED:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if match := CALL.search(COMMENT.sub("", line)):
                yield f"{path.relative_to(root)}:{number}: '{match.group().rstrip('( ')}': declare an option of the backend and read it from the host"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "backends" / "x" / "backend.cpp"
        file.parent.mkdir(parents=True)
        file.write_text('// getenv("HOME") is not called\nconst char* option = host.option("home");\nconst char* home = std::getenv("HOME");\n')
        found = list(findings(pathlib.Path(folder)))
        assert len(found) == 1 and found[0].startswith("backends/x/backend.cpp:3: 'getenv'"), found
    print("a call of getenv is found")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--self-test", action="store_true", help="show that a call is found")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    found = list(findings(arguments.root))
    if found:
        sys.exit("\n".join([*found, f"{len(found)} uses of the environment in plugins"]))
    print("no plugin uses the environment")


if __name__ == "__main__":
    main()
