#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the exported and imported symbols of the built libraries.

  check_exports.py --core libtenon.so --plugin FILE... [--plugins DIRECTORY]

A plugin exports only tenon_backend_query, and imports only what the libraries that it links define; libtenon must not be one of them.
The core needs no vendor library.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

QUERY = "tenon_backend_query"
VENDOR = re.compile(r"lib(open|goto|f77|c)?blas|liblapack|libcuda|libcu(blas|dnn|solver|sparse|fft|rand)|libnv|libnccl|libmkl|libdnnl|libonednn")
SANITIZER = re.compile(r"__(asan|ubsan|tsan|msan|lsan|sanitizer)_")  # they come with the sanitized executable


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr.strip()}")
    return result.stdout


def symbols(library, *which):
    """name -> type letter; versions cut off."""
    found = {}
    for line in run("nm", "-D", *which, library).splitlines():
        *_, kind, name = line.split()
        found[name.split("@")[0]] = kind
    return found


def needed(library):
    """(names of its NEEDED entries, file of each library that the loader finds, names that the loader does not find)"""
    direct = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library))
    resolved, missing = {}, []
    for line in run("ldd", library).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if match and match.group(2) == "not":
            missing.append(match.group(1))
        elif match:
            resolved[match.group(1)] = match.group(2)
        elif re.match(r"\s*/", line):
            path = line.split()[0]
            resolved[Path(path).name] = path
    return direct, resolved, missing


def check_plugin(plugin, core_symbols, cache):
    problems = []
    exported = symbols(plugin, "--defined-only")
    if set(exported) != {QUERY}:
        extra = sorted(set(exported) - {QUERY})
        problems.append(f"exports {len(exported)} symbols, expected only {QUERY}; also: {', '.join(extra[:8]) or 'nothing'}"
                        + ("" if QUERY in exported else f"; {QUERY} is missing"))
    direct, resolved, missing = needed(plugin)
    problems += [f"needs {name}: a plugin must not link libraries of Tenon" for name in direct if name.startswith("libtenon")]
    problems += [f"needs {name}, which is not found" for name in missing]
    offered = set()
    for path in resolved.values():
        if path not in cache:
            cache[path] = set(symbols(path, "--defined-only"))
        offered |= cache[path]
    for name, kind in sorted(symbols(plugin, "--undefined-only").items()):
        if kind in "wv" or SANITIZER.match(name) or name in offered:
            continue
        owner = "libtenon" if name in core_symbols else "none of the libraries it needs"
        problems.append(f"imports {name}, which {owner} defines")
    return problems


def check_core(core):
    direct, resolved, missing = needed(core)
    problems = [f"needs {name}: the core must link no backend and no vendor library" for name in sorted({*direct, *resolved}) if VENDOR.match(name)]
    return problems + [f"needs {name}, which is not found" for name in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=Path, help="libtenon.so")
    parser.add_argument("--plugin", type=Path, action="append", default=[])
    parser.add_argument("--plugins", type=Path, help="every libtenon_backend_*.so of a directory")
    arguments = parser.parse_args()
    plugins = list(arguments.plugin)
    if arguments.plugins:
        found = sorted(arguments.plugins.glob("libtenon_backend_*.so"))
        if not found:
            sys.exit(f"{arguments.plugins}: no libtenon_backend_*.so there")
        plugins += found

    failures = 0
    cache = {}
    core_symbols = set(symbols(arguments.core, "--defined-only")) if arguments.core else set()
    checks = [(arguments.core, check_core(arguments.core))] if arguments.core else []
    checks += [(plugin, check_plugin(plugin, core_symbols, cache)) for plugin in plugins]
    for library, problems in checks:
        print(f"{library}: {'ok' if not problems else ''}")
        print(*(f"  {problem}" for problem in problems), sep="\n", end="\n" if problems else "")
        failures += bool(problems)
    return 1 if failures or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
