# SPDX-License-Identifier: Apache-2.0
"""Reads the contents of tenon/backend.h and tenon/transport.h: structs, fields, constants, signatures.

The headers are preprocessed and then read declaration by declaration. A declaration that is not understood is an error, so that none is
overlooked; `layout.py` lets the compiler confirm that the fields fill their struct.
"""
import re
import subprocess
from collections import namedtuple
from pathlib import Path

Struct = namedtuple("Struct", "name growth fields")  # growth: growing (struct_size), strided (by the element stride), frozen
Field = namedtuple("Field", "name type")
Header = namedtuple("Header", "structs constants strings signatures aliases")

# Fixed widths only: no bool, no enum types, no bit-fields, no long, no size_t (rule 3 of the ABI).
SCALARS = {"uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "double"}
HEADERS = ("backend.h", "transport.h")  # the last one includes the others
NOT_CONSTANTS = {"TENON_BACKEND_H", "TENON_TRANSPORT_H", "TENON_CALL", "TENON_EXPORT"}
# Structs with struct_size that do not grow: a new attribute needs a new op version.
CLOSED_PREFIX = "tenon_attributes_"


class HeaderError(Exception):
    """The header contains something that breaks the rules of the ABI or that this reader does not understand."""


def _preprocess(compiler, directory, *options):
    command = [*compiler, "-E", "-std=c11", *options, f"-I{directory}", str(directory / "tenon" / HEADERS[-1])]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise HeaderError(f"{' '.join(command)}:\n{result.stderr}")
    return result.stdout


def _own_text(preprocessed, directory):
    """Only the lines that came from the ABI's own files."""
    kept, own = [], False
    for line in preprocessed.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            own = Path(marker.group(1)).parent == directory / "tenon"
        elif own and not line.startswith("#"):
            kept.append(line)
    return re.sub(r"\s+", " ", " ".join(kept)).strip()


def _declarations(text):
    """Splits at the semicolons outside braces."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == ";" and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        raise HeaderError(f"unfinished declaration: '{text[start:].strip()[:80]}'")


def _split(text):
    """Splits at the commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _plain_type(const, base, stars, where):
    known = base in SCALARS or base.startswith("tenon_") or (base in ("char", "void") and (stars or where == "result" and base == "void"))
    if not known:
        raise HeaderError(f"{where}: type '{base}' does not belong into the ABI; expected one of {', '.join(sorted(SCALARS))}, tenon_*")
    return f"{const or ''}{base}{stars}"


PLAIN = re.compile(r"(const )?(\w+) ?(\*{0,2}) ?(\w+)?$")
POINTER = re.compile(r"(.+?) ?\(\* ?(\w+)\)\((.*)\)$")
QUERY = re.compile(r'__attribute__\(\(visibility\("default"\)\)\) (\w+) +(\w+)\((.*)\)$')


def _signature(result, parameters):
    kinds = ", ".join(_parameter(p) for p in _split(parameters))
    match = PLAIN.match(result)
    if not match or match.group(4):
        raise HeaderError(f"result type '{result}' is not understood")
    return f"{_plain_type(match.group(1), match.group(2), match.group(3), 'result')}(*)({kinds})"


def _parameter(text):
    """Only the type: a parameter may change its name."""
    pointer = POINTER.match(text)
    if pointer:
        return _signature(pointer.group(1), pointer.group(3))
    match = PLAIN.match(text)
    if not match:
        raise HeaderError(f"parameter '{text}' is not understood")
    return _plain_type(match.group(1), match.group(2), match.group(3), f"parameter '{text}'")


def _field(text, struct):
    pointer = POINTER.match(text)
    if pointer:
        return Field(pointer.group(2), _signature(pointer.group(1), pointer.group(3)))
    array = re.match(r"(\w+) (\w+)\[(\w+)\]$", text)
    if array:
        if array.group(1) != "char":
            _plain_type("", array.group(1), "", f"{struct}.{array.group(2)}")
        return Field(array.group(2), f"{array.group(1)}[{array.group(3)}]")
    match = PLAIN.match(text)
    if not match or not match.group(4):
        raise HeaderError(f"{struct}: field '{text}' is not understood")
    return Field(match.group(4), _plain_type(match.group(1), match.group(2), match.group(3), f"{struct}.{match.group(4)}"))


def _growth(name, fields, source):
    # By the name of a field, or of a parameter if the array is the caller's: value_stride, answer_stride.
    if any(name.endswith(f"_{element}") for element in re.findall(r"uint32_t (\w+)_stride\b", source)):
        return "strided"
    if fields[0].name == "struct_size" and not name.startswith(CLOSED_PREFIX):
        return "growing"
    comment = re.search(r"/\*((?:(?!\*/).)*)\*/\s*typedef struct " + name + r" \{", source, flags=re.S)
    if not name.startswith(CLOSED_PREFIX) and not (comment and "Frozen" in comment.group(1)):
        raise HeaderError(f"{name} has neither struct_size nor an element stride; then its comment must say that it is 'Frozen'")
    return "frozen"


def read_header(directory, compiler=("cc",)):
    directory = Path(directory)
    source = "".join((directory / "tenon" / header).read_text() for header in HEADERS)
    bodies, constants, strings, signatures, aliases = {}, [], [], {}, {}
    for text in _declarations(_own_text(_preprocess(compiler, directory), directory)):
        struct = re.match(r"typedef struct (\w+) \{(.*)\} (\w+)$", text)
        enum = re.match(r"enum \{(.*)\}$", text)
        alias = re.match(r"typedef (\w+) (tenon_\w+)$", text)
        opaque = re.match(r"typedef struct (\w+) (\w+)$", text)
        pointer = re.match(r"typedef (.+)$", text) and POINTER.match(text.removeprefix("typedef "))
        if struct and struct.group(1) == struct.group(3):
            bodies[struct.group(1)] = [_field(f.strip(), struct.group(1)) for f in struct.group(2).split(";") if f.strip()]
        elif enum:
            for entry in _split(enum.group(1)):
                name = re.match(r"(TENON_\w+) = .+$", entry)
                if not name:
                    raise HeaderError(f"enumerator '{entry}' has no explicit value")
                constants.append(name.group(1))
        elif alias and alias.group(1) in SCALARS:
            aliases[alias.group(2)] = alias.group(1)
        elif query := QUERY.match(text):
            signatures[query.group(2)] = _signature(query.group(1), query.group(3))
        elif pointer:
            signatures[pointer.group(2)] = _signature(pointer.group(1), pointer.group(3))
        elif not (opaque and opaque.group(1) == opaque.group(2)):
            raise HeaderError(f"declaration '{text[:120]}' is not understood")

    for line in _preprocess(compiler, directory, "-dM").splitlines():
        macro = re.match(r"#define (TENON_\w+) (.+)$", line)
        if not macro or macro.group(1) in NOT_CONSTANTS or macro.group(1).startswith("TENON_DTYPES_"):
            continue
        (strings if macro.group(2).startswith('"') else constants).append(macro.group(1))

    structs = {name: Struct(name, _growth(name, fields, source), fields) for name, fields in bodies.items()}
    for struct in structs.values():
        for field in struct.fields:
            inner = structs.get(field.type.split("[")[0])
            if inner and inner.growth != "frozen":
                raise HeaderError(f"{struct.name}.{field.name} holds a {inner.name} by value, which may grow; expected a pointer to it")
    return Header(structs, sorted(set(constants)), sorted(strings), signatures, aliases)
