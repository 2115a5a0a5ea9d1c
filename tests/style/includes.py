#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the directions of includes: includes.txt says which folder may include which.

Usage: includes.py [--root FOLDER] | --self-test
"""
import argparse
import contextlib
import io
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SUFFIXES = {".h", ".c", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
# Where compilers look, besides the folders above the including file.
ROOTS = ["runtime", "runtime/core", "plugins", "plugins/abi", "plugins/sdk", "tools", "tests"]


def read_table(path):
    """folder -> the folders that it may include."""
    table = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        folder, colon, allowed = line.partition(":")
        if not colon or folder in table:
            sys.exit(f"{path}:{number}: expected `folder: folders`, each folder once, got '{line}'")
        table[folder] = allowed.split()
    for folder, allowed in table.items():
        unknown = [name for name in allowed if not any(inside(other, name) for other in table)]
        if unknown:
            sys.exit(f"{path}: {folder}: expected folders of the table, got {', '.join(unknown)}")
    return table


def inside(folder, name):
    return folder == name or folder.startswith(name + "/")


def folder_of(path, table):
    """The line of the table for a file: that of its nearest folder. None: the table does not cover it."""
    return next((str(parent) for parent in path.parents if str(parent) in table), None)


def included_file(root, file, quote, name):
    """The file of the tree that an include names, relative to its root. None: a header from elsewhere, or a generated one."""
    folders = [pathlib.Path(folder) for folder in ROOTS]
    if quote == '"':
        folders = list(file.parents) + folders
    for folder in folders:
        path = root / folder / name
        if path.is_file():
            return path.resolve().relative_to(root)
    return None


def violations(root, table):
    """(file, line, included, folder of the file, allowed folders) of each wrong include."""
    for path in sorted(p for top in {folder.split("/")[0] for folder in table} for p in (root / top).rglob("*")):
        file = path.relative_to(root)
        folder = folder_of(file, table)
        if path.suffix not in SUFFIXES or folder is None:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            included = match and included_file(root, file, *match.groups())
            if not included:
                continue
            other = folder_of(included, table)
            if other is None or not any(inside(other, name) for name in (folder, *table[folder])):
                yield file, number, included, folder, table[folder]


def check(root):
    """Prints each wrong include. Returns their number."""
    found = list(violations(root, read_table(root / "tests/style/includes.txt")))
    for file, number, included, folder, allowed in found:
        print(f"{file}:{number}: includes {included}, but {folder} may only include itself and: {', '.join(allowed) or 'nothing else'}")
    if found:
        print(f"{len(found)} includes point the wrong way; move what both sides need to a folder that both may include "
              "(tests/style/includes.txt)")
    return len(found)


def self_test(root):
    """In a copy of parts of the tree, one wrong include after another is found, and the copy itself is clean."""
    wrong = [("runtime/train/model.cpp", "config/model_yaml.h"), ("runtime/train/log/progress.h", "train/model_state.h"),
             ("runtime/yaml/reader.h", "core/log.h"), ("runtime/core/log.cpp", "exec/trace.h"), ("backends/reference/backend.cpp", "graph/op.h"),
             ("plugins/sdk/plan.cpp", "loader/loader.h")]
    with tempfile.TemporaryDirectory() as temporary:
        copy = pathlib.Path(temporary).resolve()
        for folder in ["runtime", "plugins", "backends/reference", "tests/style"]:
            shutil.copytree(root / folder, copy / folder)
        assert check(copy) == 0, "the copy has wrong includes"
        for name, included in wrong:
            file = copy / name
            text = file.read_text()
            file.write_text(text + f'\n#include "{included}"\n')
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                found = check(copy)
            message = f"{name}:{len(text.splitlines()) + 2}: includes "
            assert found == 1 and output.getvalue().startswith(message), f"expected '{message}...', got: {output.getvalue()}"
            file.write_text(text)
    print(f"{len(wrong)} wrong includes were found")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=HERE.parents[1])
    parser.add_argument("--self-test", action="store_true", help="show that wrong includes are found")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    if arguments.self_test:
        self_test(root)
        return 0
    return 1 if check(root) else 0


if __name__ == "__main__":
    sys.exit(main())
