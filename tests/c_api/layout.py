#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tenon/runtime.h with tests/c_api/layout.txt: offsets, sizes, types, constants, signatures of functions.

  layout.py check      compares; reports changes
  layout.py append     compares with the layout of a release (--layout FILE): everything released must be unchanged
  layout.py write      regenerates layout.txt; refuses what is not an append
  layout.py compile    turns layout.txt into static assertions and compiles them with --cc, also a cross compiler
"""
import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from runtime_header import SOURCE, Header, HeaderError


# The plugin ABI's layout.py, which has the name of this file.
_spec = importlib.util.spec_from_file_location("abi_layout", SOURCE / "tests" / "abi" / "layout.py")
abi = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(abi)

LAYOUT = Path(__file__).with_name("layout.txt")
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
INCLUDES = [f"-I{SOURCE}/runtime", f"-I{SOURCE}/plugins/abi"]
TOP = """\
# The layout of tenon/runtime.h, of 64-bit targets. Written by `python3 tests/c_api/layout.py write`, never by hand.
#   constant NAME VALUE | signature FUNCTION TYPE | struct NAME GROWTH SIZE | field STRUCT.NAME OFFSET SIZE TYPE
"""


def native_layout(compiler):
    header = Header(compiler)
    program = ["#include <stddef.h>", "#include <stdio.h>", "#include <tenon/runtime.h>", "int main(void) {"]
    program += [f'  printf("constant {name} %lld\\n", (long long){name});' for name in sorted(header.constants)]
    program += [f'  puts("signature {name} {kind}");' for name, kind in sorted(header.functions.items())]
    for struct, fields in header.structs.items():
        program.append(f'  printf("struct {struct} {header.growth(struct)} %zu\\n", sizeof({struct}));')
        for field, kind in fields:
            at = f"offsetof({struct}, {field}), sizeof((({struct}*)0)->{field})"
            program.append(f'  printf("field {struct}.{field} %zu %zu {kind}\\n", {at});')
    program.append("  return 0;\n}\n")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "layout.c", Path(folder) / "layout"
        source.write_text("\n".join(program))
        subprocess.run([*compiler, "-std=c11", *INCLUDES, source, "-o", binary], check=True)
        lines = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    abi.no_gaps(lines)
    return lines


def published(file=LAYOUT):
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def check(compiler):
    appended, moved = abi.compare(abi.parse(published()), abi.parse(native_layout(compiler)))
    for title, changes in (("Changed in a way that breaks programs:", moved), ("New since layout.txt was written:", appended)):
        if changes:
            print(title, *changes, sep="\n  ", file=sys.stderr)
    if moved or appended:
        print("Since 1.0 there are only additions. Regenerate with python3 tests/c_api/layout.py write", file=sys.stderr)
        return 1
    print(f"{len(published())} lines of {LAYOUT.name} agree with the header")
    return 0


def compile_assertions(compiler):
    if not shutil.which(compiler[0]):
        print(f"skipped: no {compiler[0]} here, so this target's layout was not checked; tools/setup installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "layout.c"
        source.write_text(abi.assertions(abi.parse(published())).replace("tenon/transport.h", "tenon/runtime.h"))
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command = [*compiler, *strict, *INCLUDES, "-c", str(source), "-o", str(Path(folder) / "layout.o")]
        if subprocess.run(command).returncode:
            print(f"{' '.join(compiler)}: the layout differs there from layout.txt", file=sys.stderr)
            return 1
    print(f"{' '.join(compiler)}: layout as in {LAYOUT.name}")
    return 0


def append(file, compiler):
    appended, moved = abi.compare(abi.parse(published(file)), abi.parse(native_layout(compiler)))
    if moved:
        print(f"The header breaks the promise of {file}:", *moved, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{len(published(file))} lines of {file} are as they were; appended since:", *appended, sep="\n  ")
    return 0


def write(compiler):
    if append(LAYOUT, compiler):
        return 1
    LAYOUT.write_text(TOP + "\n".join(native_layout(compiler)) + "\n")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "append", "write", "compile"))
    parser.add_argument("--cc", default="cc", help="compiler and its options, as one word (default: cc)")
    parser.add_argument("--layout", type=Path, default=LAYOUT, help="append: the layout of a release")
    arguments = parser.parse_args()
    compiler = arguments.cc.split()
    if arguments.command == "append":
        return append(arguments.layout, compiler)
    if arguments.command == "write":
        return write(compiler)
    return check(compiler) if arguments.command == "check" else compile_assertions(compiler)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (HeaderError, abi.HeaderError) as error:
        sys.exit(str(error))
