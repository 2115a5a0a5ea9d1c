#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the generated modules of the Python package: _api.py from tenon/runtime.h, ops.py and blas.py from the lists that the library gives, and
layers.py, losses.py and their like from the schema that the readers of YAML print.

Usage: generate.py [--check] [--build build/release]
"""
import argparse
import ctypes
import difflib
import json
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from blas_functions import blas_modules  # noqa: E402
from c_header import api_module  # noqa: E402
from definitions import definition_modules  # noqa: E402
from op_functions import ops_module  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
PACKAGE = SOURCE / "runtime" / "python" / "tenon"


def list_of(build: Path, function: str) -> list:
    """The list that tenon_ops or tenon_blas_routines gives."""
    called = ctypes.CDLL(str(build / "lib" / "libtenon.so"))[function]
    called.restype = ctypes.c_void_p
    text = ctypes.c_void_p()
    if called(ctypes.byref(text)):
        sys.exit(f"{function} failed")
    return json.loads(ctypes.string_at(text.value))


def modules(build: Path) -> dict:
    """file name -> its text"""
    headers = (SOURCE / "runtime/tenon/runtime.h").read_text(), (SOURCE / "plugins/abi/tenon/backend.h").read_text()
    made = {"_api.py": api_module(*headers)}
    schema = subprocess.run([build / "bin" / "tenon", "config", "print", "--schema"], check=True, capture_output=True, text=True).stdout
    made["ops.py"] = ops_module(list_of(build, "tenon_ops"))
    made.update(blas_modules(list_of(build, "tenon_blas_routines")))
    made.update(definition_modules(schema))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release", help="a build of the library and the command line")
    arguments = parser.parse_args()
    stale = False
    for name, text in modules(arguments.build).items():
        file = PACKAGE / name
        before = file.read_text() if file.exists() else ""
        if not arguments.check:
            file.write_text(text)
        elif before != text:
            stale = True
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), text.splitlines(True), str(file), "generated"))
    if stale:
        sys.exit("the files above are not up to date: run tools/python/generate.py")


if __name__ == "__main__":
    main()
