#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a pair of old and new: drives one plugin by one core and compares the output with the expected one.

  pairs.py [--core FOLDER] [--plugins FOLDER] --name template|reference --speaks 1.0|1.1 --like FOLDER [--feature "NAME VALUE"]...

--core holds abi_driver and libtenon.so. The results must be bitwise those of --like, an unpacked release, whose core drives its own plugin of
that name. Each --feature is an expected feature line; no others are allowed.
"""
import argparse
import os
import sys
from pathlib import Path

import archive


def drive(core, plugin, name):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TENON_")}
    environment["LD_LIBRARY_PATH"] = str(core)  # libtenon.so of this core, whatever the program's rpath is
    done = archive.run([core / "abi_driver", plugin, name], env=environment)
    if done.returncode != 0:
        sys.exit(f"{core / 'abi_driver'} {plugin} {name}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    kinds = {"result": [], "feature": [], "speaks": [], "warning": []}
    for line in done.stdout.splitlines():
        kind, rest = line.split(" ", 1)
        kinds[kind].append(rest)
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=Path, help="default: that of --like")
    parser.add_argument("--plugins", type=Path, help="default: those of --like")
    parser.add_argument("--name", required=True)
    parser.add_argument("--speaks", required=True)
    parser.add_argument("--like", type=Path, required=True)
    parser.add_argument("--feature", action="append", default=[])
    arguments = parser.parse_args()
    file = f"libtenon_backend_{arguments.name}.so"
    problems = []
    archive.skip_elsewhere()
    old_core, old_plugins = arguments.like / "driver", arguments.like / "gcc"
    got = drive(arguments.core or old_core, (arguments.plugins or old_plugins) / file, arguments.name)
    expected = drive(old_core, old_plugins / file, arguments.name)
    if got["speaks"] != [arguments.speaks]:
        problems.append(f"expected ABI {arguments.speaks} to be negotiated, got {got['speaks']}")
    problems += [f"a warning: {warning}" for warning in got["warning"]]
    if not expected["result"]:
        problems.append("there is no result to compare with")
    for mine, theirs in zip(got["result"], expected["result"]):
        if mine != theirs:
            problems.append(f"results differ:\n  {mine}\n  {theirs}")
    if len(got["result"]) != len(expected["result"]):
        problems.append(f"{len(got['result'])} results, {len(expected['result'])} expected")
    for feature in arguments.feature:
        if not any(line.startswith(feature) for line in got["feature"]):
            problems.append(f"no feature '{feature}'")
    for line in got["feature"]:
        if not any(line.startswith(feature) for feature in arguments.feature):
            problems.append(f"an unexpected feature '{line}'")
    print(*problems, sep="\n")
    if not problems:
        print(f"ABI {arguments.speaks}: {len(got['result'])} results equal, {len(got['feature'])} features as expected")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
