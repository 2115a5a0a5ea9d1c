# SPDX-License-Identifier: Apache-2.0
"""Reads plugins/abi/tenon/ops.def, older_ops.def and blas.def, strictly: a line that is not understood is an error, never skipped."""
import re
from collections import namedtuple
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HEADERS = SOURCE / "plugins" / "abi"

Op = namedtuple("Op", "id name version stem family type_operand dtypes attributes indexing schema")
Older = namedtuple("Older", "name version attributes newest_attributes defaults schema")
Routine = namedtuple("Routine", "id routine level signature dtypes")


class ListError(Exception):
    """The list breaks its own rules."""


def _entries(path, macro, fields):
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#(?:\\\n|[^\n])*", " ", text, flags=re.M)  # preprocessor lines, continued ones too
    call = re.compile(r"\s*" + macro + r'\(((?:[^()"]|"[^"]*")*)\)')
    at = 0
    while text[at:].strip():
        match = call.match(text, at)
        if not match:
            raise ListError(f"{path}: expected {macro}(...), got '{text[at:].strip()[:60]}'")
        values = [v.strip() for v in re.findall(r'"[^"]*"|[^,"]+', match.group(1)) if v.strip()]
        if len(values) != fields:
            raise ListError(f"{path}: {macro}({values[0]}, {values[1]}, ...) has {len(values)} fields, expected {fields}")
        yield values
        at = match.end()


def _unique(path, entries, key, what):
    seen = {}
    for entry in entries:
        value = key(entry)
        if value in seen:
            raise ListError(f"{path}: {what} {value} is given to both '{seen[value][1]}' and '{entry[1]}'; it must be unique forever")
        seen[value] = entry


def read_ops(directory=HEADERS):
    path = Path(directory) / "tenon" / "ops.def"
    ops = [Op(int(v[0]), v[1], int(v[2]), v[3], v[4], int(v[5]), v[6], v[7], v[8], v[9].strip('"')) for v in _entries(path, "TENON_OP", 10)]
    _unique(path, ops, lambda op: op.id, "id")
    _unique(path, ops, lambda op: op.name, "name")
    _unique(path, ops, lambda op: op.stem, "stem")
    for op in ops:
        if not 0 < op.id < 0x40000000:
            raise ListError(f"{path}: {op.name} has id {op.id}; expected 1 .. 0x3fffffff (ids from TENON_OP_VENDOR on are a vendor's own)")
        if not op.schema:
            raise ListError(f"{path}: {op.name} has no schema")
    return ops


def read_older(directory=HEADERS):
    """The op versions that a newer one in ops.def has replaced."""
    path = Path(directory) / "tenon" / "older_ops.def"
    older = [Older(v[0], int(v[1]), v[2], v[3], v[4], v[5].strip('"')) for v in _entries(path, "TENON_OLDER_OP", 6)]
    newest = {op.name: op for op in read_ops(directory)}
    seen = set()
    for line in older:
        if line.name not in newest:
            raise ListError(f"{path}: {line.name} is not in ops.def")
        if newest[line.name].version <= line.version:
            raise ListError(f"{path}: {line.name}-{line.version} is not older than {line.name}-{newest[line.name].version} of ops.def")
        if newest[line.name].attributes != line.newest_attributes:
            raise ListError(f"{path}: {line.name}-{newest[line.name].version} has the attributes {newest[line.name].attributes}")
        if (line.name, line.version) in seen:
            raise ListError(f"{path}: {line.name}-{line.version} is listed twice")
        seen.add((line.name, line.version))
    return older


def read_routines(directory=HEADERS):
    path = Path(directory) / "tenon" / "blas.def"
    routines = [Routine(int(v[0]), v[1], int(v[2]), v[3], v[4]) for v in _entries(path, "TENON_BLAS", 5)]
    _unique(path, routines, lambda r: r.id, "id")
    _unique(path, routines, lambda r: r.routine, "routine")
    for before, after in zip(routines, routines[1:]):
        if after.id < before.id:
            raise ListError(f"{path}: {after.routine} (id {after.id}) stands after {before.routine} (id {before.id}); lines are only appended")
    return routines


def digest(op):
    """FNV-1a 64 of "Name-version: schema"."""
    value = 0xCBF29CE484222325
    for byte in f"{op.name}-{op.version}: {op.schema}".encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value
