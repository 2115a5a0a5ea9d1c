#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps plugins/abi/tenon/op_digests.h in step with ops.def.

  digests.py            compares; fails if a listed digest would change, or if an op is not listed yet
  digests.py --write    appends new digests; refuses to change or remove listed ones
"""
import argparse
import re
import sys
from pathlib import Path

from oplist import HEADERS, ListError, digest, read_older, read_ops

TOP = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* tenon/op_digests.h - what each (op, version) means, as a number: FNV-1a 64 of "Name-version: schema" of tenon/ops.def.
 * Backend and core compare these at load; where they differ, only that op version is switched off. A line never changes and
 * is never removed; `python3 tests/abi/digests.py --write` appends new ones.
 *
 *   static const tenon_op_digest digests[] = TENON_OP_DIGESTS;
 */
#ifndef TENON_OP_DIGESTS_H
#define TENON_OP_DIGESTS_H

#include <tenon/backend.h>

/* clang-format off */
#define TENON_OP_DIGESTS { \\
"""
BOTTOM = """\
}
/* clang-format on */

#endif /* TENON_OP_DIGESTS_H */
"""
LINE = re.compile(r"^  \{TENON_OP_(\w+), (\d+), 0x([0-9a-f]{16})ull\}, \\$")


def read_header(path):
    """(name, version) -> digest, in the order of the file."""
    listed = {}
    if not path.exists():
        return listed
    text = path.read_text()
    for line in text[text.index("#define TENON_OP_DIGESTS {") :].splitlines()[1:]:
        if line == "}":
            return listed
        match = LINE.match(line)
        if not match:
            raise ListError(f"{path}: not a digest line: '{line}'")
        key = (match.group(1), int(match.group(2)))
        if key in listed:
            raise ListError(f"{path}: {key[0]}-{key[1]} is listed twice")
        listed[key] = int(match.group(3), 16)
    raise ListError(f"{path}: the list has no end")


def write_header(path, listed):
    lines = [f"  {{TENON_OP_{name}, {version}, 0x{value:016x}ull}}, \\\n" for (name, version), value in listed.items()]
    path.write_text(TOP + "".join(lines) + BOTTOM)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="append digests of new (op, version) pairs")
    parser.add_argument("--headers", type=Path, default=HEADERS, help="folder that holds tenon/ops.def")
    arguments = parser.parse_args()
    path = arguments.headers / "tenon" / "op_digests.h"
    expected = {(op.name, op.version): digest(op) for op in read_ops(arguments.headers)}
    listed = read_header(path)
    names = {name for name, _ in expected}

    problems = []
    for (name, version), value in listed.items():
        if name not in names:
            problems.append(f"{name}-{version} is listed, but missing in ops.def: a published op must stay")
        elif expected.get((name, version), value) != value:
            problems.append(
                f"{name}-{version} has the published digest 0x{value:016x}, its line in ops.def now gives "
                f"0x{expected[name, version]:016x}: a changed schema needs a new version"
            )
    for older in read_older(arguments.headers):
        value = digest(older)
        if listed.get((older.name, older.version)) != value:
            problems.append(f"{older.name}-{older.version} of older_ops.def gives 0x{value:016x}, which is not its published digest")
    missing = [key for key in expected if key not in listed]
    if problems:
        print(*problems, sep="\n", file=sys.stderr)
        return 1
    if arguments.write:
        write_header(path, {**listed, **{key: expected[key] for key in missing}})
        print(f"{path}: {len(listed)} digests kept, {len(missing)} appended")
        return 0
    for name, version in missing:
        print(f"{name}-{version} is not in op_digests.h: run python3 tests/abi/digests.py --write", file=sys.stderr)
    if not missing:
        print(f"{len(expected)} digests agree with ops.def")
    return 1 if missing else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ListError as error:
        sys.exit(str(error))
