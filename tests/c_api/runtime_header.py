# SPDX-License-Identifier: Apache-2.0
"""Reads tenon/runtime.h: structs, constants and functions, in the form of tests/abi/layout.py."""
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HEADER = SOURCE / "runtime" / "tenon" / "runtime.h"
sys.path.insert(0, str(SOURCE / "tests" / "abi"))

# Fixed widths only, as in the plugin ABI (rule 3): no bool, no enum types, no long, no size_t.
TYPES = re.compile(r"(const )?(struct )?(u?int(8|16|32|64)_t|double|char|void|tenon_\w+|Tenon\w+|DLManaged\w+)((\*| const(?=\*))*)$")


class HeaderError(Exception):
    """The header contains something that breaks the rules or that this reader does not understand."""


def _own_text(compiler):
    """The preprocessed lines that come from the header itself."""
    command = [*compiler, "-E", "-std=c11", f"-I{SOURCE}/runtime", f"-I{SOURCE}/plugins/abi", str(HEADER)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise HeaderError(f"{' '.join(command)}:\n{result.stderr}")
    kept, own = [], False
    for line in result.stdout.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            own = Path(marker.group(1)) == HEADER
        elif own and not line.startswith("#"):
            kept.append(line)
    text = re.sub(r"\s+", " ", " ".join(kept)).strip()
    return re.sub(r" ?\* ?", "*", re.sub(r'__attribute__ ?\(\(visibility ?\("default"\)\)\) ', "", text)).replace("*const", "* const")


def _split(text, separator):
    """Splits outside of parentheses and braces."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(character, 0)
        if character == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def _type(text, where):
    if not TYPES.match(text):
        raise HeaderError(f"{where}: type '{text}' does not belong into the API")
    return text


def _named(text, where):
    """(type, name) of a parameter or field, whose name a function pointer has inside."""
    if pointer := re.match(r"(.+?)\(\*(\w+)\)\((.*)\)$", text):
        return f"{_type(pointer.group(1).strip(), where)}(*)({_parameters(pointer.group(3), where)})", pointer.group(2)
    if listed := re.match(r"(\w+) (\w+)\[(\w+)\]$", text):
        return f"{_type(listed.group(1), where)}[{listed.group(3)}]", listed.group(2)
    plain = re.match(r"(.*?[ *])(\w+)$", text)
    if not plain:
        raise HeaderError(f"{where}: '{text}' is not understood")
    return _type(plain.group(1).strip(), where), plain.group(2)


def _parameters(text, where):
    return "" if text == "void" else ", ".join(_named(part, where)[0] for part in _split(text, ","))


class Header:
    """structs: name -> [(field, type)], constants: names, functions: name -> type."""

    def __init__(self, compiler=("cc",)):
        self.structs, self.constants, self.functions = {}, [], {}
        for text in _split(_own_text(compiler), ";"):
            struct = re.match(r"typedef struct (\w+) \{(.*)\} (\w+)$", text)
            enum = re.match(r"enum \{(.*)\}$", text)
            function = re.match(r"(.+?)(\btenon_\w+)\((.*)\)$", text)
            if struct:
                self.structs[struct.group(1)] = [_named(field, struct.group(1))[::-1] for field in _split(struct.group(2), ";")]
            elif enum:
                for entry in _split(enum.group(1), ","):
                    self.constants.append(entry.split(" ")[0])
            elif function and not text.startswith("typedef"):
                name = function.group(2)
                self.functions[name] = f"{_type(function.group(1).strip(), name)}({_parameters(function.group(3), name)})"
            elif not re.match(r"(typedef )?struct (\w+)( \w+)?$|typedef uint32_t TenonValue$", text):
                raise HeaderError(f"declaration '{text[:120]}' is not understood")

    def growth(self, name):
        if self.structs[name][0][0] == "struct_size":
            return "growing"
        comment = re.search(r"/\*((?:(?!\*/).)*)\*/\s*typedef struct " + name + r" \{", HEADER.read_text(), flags=re.S)
        if not (comment and "Frozen" in comment.group(1)):
            raise HeaderError(f"{name} has no struct_size; then its comment must say that it is 'Frozen'")
        return "frozen"
