#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every slot of the plugin ABI has a caller in the core, a filler among the backends, a kit case and a mutant that fails it (ADR 21).

  gate.py check      exits with 1 and names each slot that lacks one, and what it lacks
  gate.py table      prints what was found for each slot
  gate.py self-test  shows that a hole is found, on changed copies

The slots are the function pointers of tenon_backend_table, of its optional blocks and of tenon_host, read from the header; for tenon_host the
backends and the SDK call and the core fills. What is looked for, in the text of the sources:

  caller   in runtime/ and plugins/loader, or for tenon_host in backends/ and plugins/sdk: `x.slot(`, or `x.slot` taken as a value, where x is
           declared with the type of the table (`const tenon_backend_table& table`): a bare name in the same file, a member in a header or
           in the ABI's own
  filler   in backends/ and plugins/sdk, or for tenon_host in runtime/: `x.slot = function`, or the slot's place in an initialiser of the table
  case     the row of the slot in tests/conformance/core_slots.cpp, whose case the kit has (the kit checks that)
  mutant   a line of tests/mutants/mutants.def whose case matches that case, and whose mutation is asked for by the function that tests/mutants
           puts into the slot, or where it puts it there. The tests mutants.* show that the case fails. Functions of the host have none:
           a backend uses them wrongly in one of its own slots.

BLAS routines are one row, since blas.def generates them: each signature has its file in tests/conformance/blas.
"""
import argparse
import fnmatch
import re
import shutil
import sys
import tempfile
from collections import defaultdict, namedtuple
from pathlib import Path

from header import read_header
from oplist import HEADERS, SOURCE

sys.path.insert(0, str(SOURCE / "tests" / "mutants"))
import mutants  # noqa: E402

SUFFIXES = {".h", ".c", ".cpp"}
TABLES = ("tenon_backend_table", "tenon_capture_table", "tenon_pack_table", "tenon_profile_table", "tenon_collectives_table", "tenon_host",
          "tenon_blas_table")
KINDS = ("callers", "fillers", "cases", "mutants")
NULLS = {"NULL", "nullptr", "0", ""}
CORE, BACKENDS = ("runtime", "plugins/loader"), ("backends", "plugins/sdk")

Fill = namedtuple("Fill", "file value condition")


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda c: re.sub(r"[^\n]", " ", c.group()), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def top_level(text):
    """The parts of an initialiser between its commas."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


class Sources:
    """The C and C++ files of some folders."""

    DECLARED = re.compile(r"\b(" + "|".join(TABLES) + r")\b(?:\s+const)?\s*[&*]?\s*(?:const\s+)?(\w+)\s*(?=[;,)({=])")
    USED = re.compile(r"\b(\w+)(?:\(\))?\s*(?:\.|->)\s*(?=(\w+)\s*(?:\(|,|;|=(?!=)\s*([^;,]*)))")
    INITIALISED = re.compile(r"\b(" + "|".join(TABLES) + r")\s+\w+\s*=?\s*\{(.*?)\};", re.S)

    def __init__(self, root, folders, header):
        paths = sorted(p for folder in folders for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)
        self.texts = {str(p.relative_to(root)): without_comments(p.read_text(errors="replace")) for p in paths}
        self.called, self.filled = defaultdict(set), defaultdict(list)  # by (table, slot): files, fills
        members = defaultdict(set)  # by name: the tables that a member of that name may be
        for struct in header.structs.values():
            for field in struct.fields:
                table = field.type.removeprefix("const ").rstrip("*")
                if table in TABLES:
                    members[field.name].add(table)
        declared = {file: defaultdict(set) for file in self.texts}  # by name, of variables
        for file, text in self.texts.items():
            for table, name in self.DECLARED.findall(text):
                declared[file][name].add(table)
                if file.endswith(".h"):
                    members[name].add(table)
        slots = {table: [field.name for field in header.structs[table].fields] for table in TABLES}
        for file, text in self.texts.items():
            for use in self.USED.finditer(text):
                name, slot, value = use.groups()
                is_member = text.endswith((".", "->"), 0, use.start())
                tables = members[name] if is_member else declared[file].get(name) or members[name]
                for table in (t for t in tables if slot in slots[t] or t == "tenon_blas_table"):
                    if value is None:
                        self.called[table, slot].add(file)
                    elif value.strip() not in NULLS:
                        begin = max(text.rfind(end, 0, use.start()) for end in ";{}") + 1
                        self.filled[table, slot].append(Fill(file, value.strip(), text[begin:use.start()]))
            for table, values in self.INITIALISED.findall(text):
                for index, part in enumerate(top_level(values)):
                    named = re.match(r"\.(\w+)\s*=\s*(.*)$", part, re.S)
                    slot, value = named.groups() if named else (slots[table][index] if index < len(slots[table]) else "", part)
                    if value.strip() not in NULLS:
                        self.filled[table, slot].append(Fill(file, value.strip(), ""))

    def asked(self, fills):
        """The mutations that are asked for where something is put into a slot, or by the function that is put there."""
        found = set()
        for fill in fills:
            body = re.search(r"^[^\s#][^\n]*\b" + re.escape(fill.value) + r"\([^;{]*\{(.*?)^\}", self.texts[fill.file], re.S | re.M)
            found.update(re.findall(r"Mutation::(\w+)", fill.condition + (body.group(1) if body else "")))
        return found


class Gate:
    def __init__(self, root=SOURCE, headers=HEADERS, list_of_mutants=None):
        self.header = read_header(headers)
        self.mutants = mutants.read(list_of_mutants or root / "tests" / "mutants" / "mutants.def")
        self.core, self.backends, self.wrong = (Sources(root, folders, self.header) for folders in (CORE, BACKENDS, ("tests/mutants",)))
        self.blas_cases = {p.stem for p in (root / "tests" / "conformance" / "blas").glob("*.cpp")}
        self.rows = self.rows_of_kit(root / "tests" / "conformance" / "core_slots.cpp")

    @staticmethod
    def rows_of_kit(path):
        """(table, slot) -> the case that judges it."""
        rows, table = {}, None
        for line in re.finditer(r"#define TENON_STRUCT (\w+)|TENON_SLOT\((\w+), \"([^\"]+)\"\)", path.read_text()):
            table = line.group(1) or table
            if line.group(2):
                rows[table, line.group(2)] = "core/" + line.group(3)
        return rows

    def failing(self, table, slot, case):
        """The mutants that fail `case` by what they put into the slot."""
        lines = (self.mutants.get(name) for name in sorted(self.wrong.asked(self.wrong.filled[table, slot])))
        return [m.name for m in lines if m and not m.unmodified and fnmatch.fnmatchcase(case, glob(m.case))]

    def slots(self):
        """name -> {kind: what was found}; a kind that is not looked for is None."""
        found = {}
        for table in TABLES[:-1]:
            of_host = table == "tenon_host"
            callers, fillers = (self.backends, self.core) if of_host else (self.core, self.backends)
            for slot in (f.name for f in self.header.structs[table].fields if "(*)" in f.type):
                case = self.rows.get((table, slot))
                found[f"{table}.{slot}"] = {
                    "callers": sorted(callers.called[table, slot]),
                    "fillers": sorted({fill.file for fill in fillers.filled[table, slot]}),
                    "cases": [case] if case else [],
                    "mutants": None if of_host else self.failing(table, slot, case) if case else [],
                }
        found["tenon_blas_table.*"] = self.blas()
        return found

    def blas(self):
        """blas.def makes caller and filler of all routines alike; the core calls the macro's parameter, `table->routine`."""
        fields = [f for f in self.header.structs["tenon_blas_table"].fields if f.type.endswith("_fn")]
        signatures = sorted({f.type.removeprefix("tenon_blas_").removesuffix("_fn") for f in fields})
        asked = set().union(*(self.wrong.asked(self.wrong.filled["tenon_blas_table", f.name]) for f in fields))
        return {
            "callers": sorted(self.core.called["tenon_blas_table", "routine"]),
            "fillers": sorted({fill.file for fill in self.backends.filled["tenon_backend_table", "blas"]}),
            "cases": [f"blas/{s}.cpp" for s in signatures] if self.blas_cases.issuperset(signatures) else [],
            "mutants": sorted(asked.intersection(self.mutants)),
        }

    def holes(self):
        what = {"callers": "a caller", "fillers": "a filler", "cases": "a case of the kit",
                "mutants": "a mutant in tests/mutants that fails its case"}
        return [f"{slot} lacks {what[kind]}" for slot, kinds in self.slots().items() for kind in KINDS if kinds[kind] == []]


def glob(pattern):
    """Only * and ? are special, as in the kit's filters."""
    return re.sub(r"\[", "[[]", pattern)


def print_table(gate):
    for slot, kinds in gate.slots().items():
        print(slot)
        for kind in KINDS:
            if kinds[kind] is not None:
                print(f"  {kind:8} {', '.join(kinds[kind]) or '-'}")


def self_test():
    """In a copy of the header with another slot, and with lists without a mutant, the holes are named, and no others."""
    def holes(**changed):
        return set(Gate(**changed).holes()) - known

    known = set(Gate().holes())
    with tempfile.TemporaryDirectory() as folder:
        headers = Path(folder) / "abi"
        shutil.copytree(HEADERS / "tenon", headers / "tenon")
        header = headers / "tenon" / "backend.h"
        text = header.read_text()
        assert text.count("} tenon_backend_table;") == 1
        header.write_text(text.replace("} tenon_backend_table;", "  tenon_status(TENON_CALL* device_reset)(tenon_device*, tenon_error*);\n} tenon_backend_table;"))
        added = holes(headers=headers)
        expected = defaultdict(int)
        for hole in added:
            expected[hole.split(" lacks ")[0]] += 1
        assert dict(expected) == {"tenon_backend_table.device_reset": 4}, f"expected four holes of the new slot, got {sorted(added)}"
        mutant_list = Path(folder) / "mutants.def"
        lines = (SOURCE / "tests" / "mutants" / "mutants.def").read_text().splitlines()
        mutant_list.write_text("\n".join(line for line in lines if not line.startswith("MUTANT(leaks_plans,")) + "\n")
        removed = holes(list_of_mutants=mutant_list)
        assert removed == {"tenon_backend_table.plan_destroy lacks a mutant in tests/mutants that fails its case"}, f"expected plan_destroy, got {removed}"
    print("a new slot lacks all four, and a mutant that is taken away is missed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("check", "table", "self-test"))
    command = parser.parse_args().command
    if command == "self-test":
        return self_test()
    gate = Gate()
    if command == "table":
        return print_table(gate)
    holes = gate.holes()
    if holes:
        sys.exit("\n".join([*holes, f"{len(holes)} holes; `gate.py table` prints what there is, and its docstring where it looks"]))
    print(f"{len(gate.slots())} slots, each with callers, fillers, a case and mutants")


if __name__ == "__main__":
    main()
