#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that hosts and plugins built by different compilers work together: each host drives each plugin.

  compilers_test.py --headers DIR --template FILE.c [--plugin BUILT.so ...]
"""
import argparse
import itertools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
COMPILERS = ("gcc", "clang")
FLAGS = ("-std=c11", "-D_DEFAULT_SOURCE", "-O1", "-g", "-fvisibility=hidden")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", type=Path, required=True)
    parser.add_argument("--template", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, action="append", default=[], help="a built plugin that every host drives as well")
    arguments = parser.parse_args()
    absent = [compiler for compiler in COMPILERS if not shutil.which(compiler)]
    if absent:
        print(f"skipped: no {' and no '.join(absent)} here; tools/setup installs it")
        return SKIPPED

    driver = Path(__file__).resolve().parent / "drive.c"
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        hosts, plugins = {}, {f"built {p.name}": p for p in arguments.plugin}
        for compiler in COMPILERS:
            common = [compiler, *FLAGS, f"-I{arguments.headers}"]
            hosts[compiler] = Path(folder) / f"drive-{compiler}"
            plugins[f"{compiler}'s {arguments.template.name}"] = library = Path(folder) / f"libtenon_backend_{compiler}.so"
            subprocess.run([*common, driver, "-o", hosts[compiler], "-ldl"], check=True)
            subprocess.run([*common, "-fPIC", "-shared", arguments.template, "-o", library], check=True)
        for (host, program), (name, library) in itertools.product(hosts.items(), plugins.items()):
            result = subprocess.run([program, library], capture_output=True, text=True)
            failures += result.returncode != 0
            verdict = "ok" if result.returncode == 0 else f"failed ({result.returncode})"
            print(f"{host}'s host, {name}: {verdict}; {(result.stdout + result.stderr).strip()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
