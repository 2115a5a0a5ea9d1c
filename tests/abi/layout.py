#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the layout of the ABI with tests/abi/layout.txt: offsets, sizes, types, constants, ids.

  layout.py check                 compares; reports changes and how to proceed
  layout.py append                compares with the layout of a release (--layout archive/1.0/layout.txt): everything released must be unchanged
  layout.py write                 regenerates layout.txt; a change that is not an append needs another major version
  layout.py compile [--released]  turns layout.txt into static assertions and compiles them with --cc, also a cross compiler; --released:
                                  structs may have grown since
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from header import HeaderError, read_header
from oplist import HEADERS, SOURCE, ListError, read_older, read_ops, read_routines

LAYOUT = SOURCE / "tests" / "abi" / "layout.txt"
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
MAY_RISE = {"TENON_ABI_MINOR", "TENON_TRANSPORT_ABI_MINOR", "TENON_DTYPE_COUNT"}  # they count what has been appended
TOP = """\
# The layout of tenon/backend.h and tenon/transport.h, of 64-bit targets. Written by `python3 tests/abi/layout.py write`, never by hand.
#   constant NAME VALUE | alias NAME TYPE | signature NAME TYPE | struct NAME GROWTH SIZE | field STRUCT.NAME OFFSET SIZE TYPE
#   op ID NAME-VERSION ATTRIBUTES TYPE_OPERAND | older NAME-VERSION ATTRIBUTES | blas ID ROUTINE SIGNATURE
"""


def native_layout(headers, compiler):
    """The lines of the layout file for the current header."""
    header = read_header(headers, compiler)
    program = ["#include <stddef.h>", "#include <stdio.h>", "#include <tenon/transport.h>", "int main(void) {"]
    for name in header.constants:
        program.append(f'  printf("constant {name} %lld\\n", (long long){name});')
    for name in header.strings:
        program.append(f'  printf("constant {name} \\"%s\\"\\n", {name});')
    for name, kind in header.aliases.items():
        program.append(f'  puts("alias {name} {kind}");')
    for name, kind in header.signatures.items():
        program.append(f'  puts("signature {name} {kind}");')
    for struct in header.structs.values():
        program.append(f'  printf("struct {struct.name} {struct.growth} %zu\\n", sizeof({struct.name}));')
        for field in struct.fields:
            at = f"offsetof({struct.name}, {field.name}), sizeof((({struct.name}*)0)->{field.name})"
            program.append(f'  printf("field {struct.name}.{field.name} %zu %zu {field.type}\\n", {at});')
    for op in read_ops(headers):
        program.append(f'  printf("op %d {op.name}-{op.version} {op.attributes} {op.type_operand}\\n", (int)TENON_OP_{op.name});')
    for older in read_older(headers):
        program.append(f'  puts("older {older.name}-{older.version} {older.attributes}");')
    for routine in read_routines(headers):
        program.append(f'  puts("blas {routine.id} {routine.routine} {routine.signature}");')
    program.append("  return 0;\n}\n")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "layout.c", Path(folder) / "layout"
        source.write_text("\n".join(program))
        subprocess.run([*compiler, "-std=c11", f"-I{headers}", source, "-o", binary], check=True)
        lines = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
    no_gaps(lines)
    attributes_grow(lines, read_older(headers))
    return lines


def no_gaps(lines):
    """Checks that fields fill their struct: none was overlooked, and no compiler can pad differently."""
    structs, fields = parse(lines)["struct"], parse(lines)["field"]
    for name, (_, size) in structs.items():
        end = 0
        for field, (offset, width, _) in fields.items():
            if field.split(".")[0] == name:
                if int(offset) != end:
                    raise HeaderError(f"{field} is at {offset}, the field before it ends at {end}: fill the gap with a 'reserved' field")
                end += int(width)
        if end != int(size):
            raise HeaderError(f"{name} has {size} bytes, its fields end at {end}: fill the gap with a 'reserved' field")


def attributes_grow(lines, older):
    """Checks that the attributes of an op's newest version begin with those of each older one, so that they can be cut off or filled in."""
    fields = parse(lines)["field"]
    for line in older:
        before, now = f"tenon_attributes_{line.attributes}", f"tenon_attributes_{line.newest_attributes}"
        for name, place in fields.items():
            struct, field = name.split(".")
            if struct == before and field != "reserved" and fields.get(f"{now}.{field}") != place:
                raise HeaderError(f"{now} does not begin with {name}, as {line.name}-{line.version} has it: attributes grow at their end")


def parse(lines):
    """kind -> name -> the rest of the line."""
    table = {kind: {} for kind in ("constant", "alias", "signature", "struct", "field", "op", "older", "blas")}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        kind, name, rest = line.split(" ", 2)
        parts = {"struct": 1, "field": 2}.get(kind, 0)
        table[kind][name] = tuple(rest.split(" ", parts))
    return table


def follows(old, new, older):
    """Whether `new` is a later version of the op line `old`, which is listed among the older ones."""
    (old_op, old_attributes, old_operand), (new_op, _, new_operand) = old.split(" "), new.split(" ")
    (name, version), (new_name, new_version) = old_op.rsplit("-", 1), new_op.rsplit("-", 1)
    if name != new_name or old_operand != new_operand or int(new_version) <= int(version):
        return False
    return older.get(old_op) == (old_attributes,)


def compare(old, new):
    """(messages about appended entries, messages about changed entries)."""
    appended, moved = [], []
    for kind in ("constant", "alias", "signature", "op", "older", "blas"):
        for name, value in old[kind].items():
            if name not in new[kind]:
                moved.append(f"{kind} {name} ({value[0]}) is gone")
            elif new[kind][name] != value:
                rises = name in MAY_RISE and int(new[kind][name][0]) > int(value[0])
                rises = rises or (kind == "op" and follows(value[0], new[kind][name][0], new["older"]))
                (appended if rises else moved).append(f"{kind} {name} was {value[0]}, is {new[kind][name][0]}")
        appended += [f"{kind} {name} is new" for name in new[kind] if name not in old[kind]]

    for name, (growth, size) in old["struct"].items():
        if name not in new["struct"]:
            moved.append(f"struct {name} is gone")
            continue
        if new["struct"][name][0] != growth:
            moved.append(f"struct {name} was {growth}, is {new['struct'][name][0]}")
        if int(new["struct"][name][1]) < int(size):
            moved.append(f"struct {name} had {size} bytes, has {new['struct'][name][1]}")
    appended += [f"struct {name} is new" for name in new["struct"] if name not in old["struct"]]

    for name, (offset, size, kind) in old["field"].items():
        if name not in new["field"]:
            moved.append(f"field {name} (offset {offset}) is gone")
        elif new["field"][name] != (offset, size, kind):
            now = new["field"][name]
            moved.append(f"field {name} was {kind} at {offset} ({size} bytes), is {now[2]} at {now[0]} ({now[1]} bytes)")
    for name, (offset, _, _) in new["field"].items():
        struct = name.split(".")[0]
        if name in old["field"] or struct not in old["struct"]:
            continue
        growth, size = old["struct"][struct]
        if growth == "frozen":
            moved.append(f"field {name} was added, but {struct} is frozen")
        elif int(offset) < int(size):
            moved.append(f"field {name} was put in at {offset}; {struct} grows at its end only, at {size}")
        else:
            appended.append(f"field {name} at {offset} is new")
    return appended, moved


def assertions(table, released=False):
    """layout.txt as a C file that compiles only if the layout is the same; if `released`, structs may have grown."""
    out = ["/* Written by tests/abi/layout.py from layout.txt. Freestanding: some targets have no C library here. */", "#include <stddef.h>", "#include <tenon/transport.h>"]
    for name, (value,) in table["constant"].items():
        if value.startswith('"'):
            out.append(f'_Static_assert(sizeof({name}) == sizeof({value}), "{name}");')
        else:
            relation = ">=" if released and name in MAY_RISE else "=="
            out.append(f'_Static_assert((long long){name} {relation} {value}, "{name}");')
    for name, (kind,) in table["alias"].items():
        out.append(f'_Static_assert(sizeof({name}) == sizeof({kind}), "{name}");')
    for name, (growth, size) in table["struct"].items():
        relation = ">=" if released and growth != "frozen" else "=="
        out.append(f'_Static_assert(sizeof({name}) {relation} {size}, "{name}");')
    for name, (offset, size, _) in table["field"].items():
        struct, field = name.split(".")
        out.append(f'_Static_assert(offsetof({struct}, {field}) == {offset}, "{name}");')
        out.append(f'_Static_assert(sizeof((({struct}*)0)->{field}) == {size}, "size of {name}");')
    out.append("int tenon_layout_is_as_published(void);\nint tenon_layout_is_as_published(void) { return 1; }\n")
    return "\n".join(out)


def check(arguments, compiler):
    appended, moved = compare(parse(published(arguments)), parse(native_layout(arguments.headers, compiler)))
    if moved:
        print("The layout changed in a way that breaks existing plugins:", *moved, sep="\n  ", file=sys.stderr)
        print("Append instead: a new slot, a new field, a new op version.", file=sys.stderr)
    if appended:
        print("Appended since layout.txt was written:", *appended, sep="\n  ", file=sys.stderr)
        if not moved:
            print("Appending is allowed; regenerate with\n  python3 tests/abi/layout.py write", file=sys.stderr)
    if not moved and not appended:
        print(f"{len(published(arguments))} lines of {arguments.layout.name} agree with the header")
    return 1 if moved or appended else 0


def append(arguments, compiler):
    appended, moved = compare(parse(published(arguments)), parse(native_layout(arguments.headers, compiler)))
    if moved:
        print(f"The header breaks the promise of {arguments.layout.name}:", *moved, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{len(published(arguments))} lines of {arguments.layout.name} are as they were; appended since:", *appended, sep="\n  ")
    return 0


def write(arguments, compiler):
    lines = native_layout(arguments.headers, compiler)
    if arguments.layout.exists():
        old, new = parse(published(arguments)), parse(lines)
        appended, moved = compare(old, new)
        for name, broken in (("TENON_TRANSPORT_ABI_MAJOR", [line for line in moved if "transport" in line.lower()]),
                             ("TENON_ABI_MAJOR", [line for line in moved if "transport" not in line.lower()])):
            major = int(old["constant"][name][0])
            if broken and int(new["constant"][name][0]) <= major:
                print(f"ABI {major} is released and only grows ({name}):", *broken, sep="\n  ", file=sys.stderr)
                print("Append instead: a new slot, a new field, a new op version. Nothing else is allowed within a major version.", file=sys.stderr)
                return 1
        print(*appended, *moved, sep="\n")
    arguments.layout.write_text(TOP + "\n".join(lines) + "\n")
    print(f"{arguments.layout}: {len(lines)} lines")
    return 0


def compile_assertions(arguments, compiler):
    if not shutil.which(compiler[0]):
        print(f"skipped: no {compiler[0]} here, so this target's layout was not checked; tools/setup installs it")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "layout.c"
        source.write_text(assertions(parse(published(arguments)), arguments.released))
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        command = [*compiler, *strict, f"-I{arguments.headers}", "-c", str(source), "-o", str(Path(folder) / "layout.o")]
        if subprocess.run(command).returncode:
            print(f"{' '.join(compiler)}: the layout differs there from layout.txt", file=sys.stderr)
            return 1
    print(f"{' '.join(compiler)}: layout as in {arguments.layout.name}")
    return 0


def published(arguments):
    """The lines of the checked-in layout."""
    return [line for line in arguments.layout.read_text().splitlines() if line and not line.startswith("#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "append", "write", "compile"))
    parser.add_argument("--cc", default="cc", help="compiler and its options, as one word (default: cc)")
    parser.add_argument("--released", action="store_true", help="compile: the layout is that of an earlier release")
    parser.add_argument("--headers", type=Path, default=HEADERS, help="folder that holds tenon/backend.h")
    parser.add_argument("--layout", type=Path, default=LAYOUT)
    arguments = parser.parse_args()
    command = {"check": check, "append": append, "write": write, "compile": compile_assertions}[arguments.command]
    return command(arguments, arguments.cc.split())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (HeaderError, ListError) as error:
        sys.exit(str(error))
