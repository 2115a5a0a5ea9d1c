# SPDX-License-Identifier: Apache-2.0
"""Reads tenon/runtime.h: its functions, structs and constants, and writes them as the ctypes module tenon/_api.py.

A declaration that is not understood is an error, so that none is overlooked.
"""
import re
from typing import Dict, List, NamedTuple, Tuple

SCALARS = {"uint8_t": "c_uint8", "int8_t": "c_int8", "uint32_t": "c_uint32", "int32_t": "c_int32", "uint64_t": "c_uint64",
           "int64_t": "c_int64", "double": "c_double", "float": "c_float"}
ALIASES = {"tenon_dtype": "c_uint32", "tenon_status": "c_uint32", "tenon_op": "c_uint32", "TenonValue": "c_uint32"}


class HeaderError(Exception):
    """The header has a declaration that this reader does not understand."""


class Header(NamedTuple):
    functions: List[Tuple[str, str, List[Tuple[str, str]]]]  # name, result, [(argument, type)]
    structs: List[Tuple[str, List[Tuple[str, str]]]]  # name, [(field, type)]
    constants: Dict[str, int]


def ctypes_of(declaration: str, constants: Dict[str, int]) -> Tuple[str, str]:
    """(name, ctypes type) of `const char* name`, `int64_t shape[N]`, `void (*release)(void* user)`."""
    text = " ".join(declaration.split())
    function = re.fullmatch(r"(.+?)\(\*(\w+)\)\((.*)\)", text)
    if function:
        result, name, arguments = function.groups()
        types = [] if arguments.strip() == "void" else [ctypes_of(a, constants)[1] for a in arguments.split(",")]
        return name, f"CFUNCTYPE({', '.join([result_of(result), *types])})"
    match = re.fullmatch(r"(.*?)(\w+)(?:\[(\w+)\])?", text)
    if not match:
        raise HeaderError(f"expected a declaration, got '{text}'")
    kind, name, count = match.group(1).strip(), match.group(2), match.group(3)
    plain = kind.replace("const ", "").replace("struct ", "").strip()
    if kind.count("*") == 1 and plain == "char*" and "const" in kind:
        result = "c_char_p"
    elif "*" in kind:
        result = "c_void_p"
    elif plain in SCALARS:
        result = SCALARS[plain]
    elif plain in ALIASES:
        result = ALIASES[plain]
    else:
        raise HeaderError(f"expected a type of known width for '{text}', got '{kind}'")
    if count:
        result = f"{result} * {constants[count] if count in constants else int(count)}"
    return name, result


def result_of(text: str) -> str:
    """The ctypes type of a result; an object is an address, and so is a text that the caller frees."""
    text = " ".join(text.split())
    if text == "void":
        return "None"
    return ctypes_of(text + " result", {})[1]


def read_header(text: str, constants: Dict[str, int]) -> Header:
    """`constants` are those of tenon/backend.h that array sizes use."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    text = text.replace('extern "C" {', "").replace("(TENON_CALL* ", " (*").replace("TENON_CALL ", "")  # ctypes calls so by default
    text = re.sub(r"\}\s*$", "", text)
    constants = dict(constants)
    own: Dict[str, int] = {}
    functions, structs = [], []
    while text.strip():
        text = text.lstrip()
        match = re.match(r"typedef struct (\w+) \{(.*?)\} (\w+);", text, flags=re.S)
        if match:
            fields = [part.strip() for part in match.group(2).split(";") if part.strip()]
            structs.append((match.group(3), [ctypes_of(field, constants) for field in fields]))
        elif match := re.match(r"typedef struct (\w+) \1;|struct \w+;|typedef uint32_t TenonValue;", text):
            pass
        elif match := re.match(r"enum \{(.*?)\};", text, flags=re.S):
            for entry in match.group(1).split(","):
                name, _, value = (part.strip() for part in entry.partition("="))
                if not re.fullmatch(r"[\du<>()| ]+", value):
                    raise HeaderError(f"expected a number for {name}, got '{value}'")
                own[name] = constants[name] = eval(re.sub(r"(?<=\d)u", "", value))  # digits and shifts only, see the line above
        elif match := re.match(r"TENON_API\s+(.*?)(\w+)\(([^;]*)\);", text, flags=re.S):
            result, name, arguments = match.groups()
            arguments = [] if arguments.strip() == "void" else _split(arguments)
            types = [ctypes_of(argument, constants) for argument in arguments]  # a function is passed by its address, so that it may be NULL
            functions.append((name, result_of(result), [(of, "c_void_p" if "CFUNCTYPE" in kind else kind) for of, kind in types]))
        else:
            raise HeaderError(f"expected a declaration, got '{text[:120]}'")
        text = text[match.end():]
    return Header(functions, structs, own)


def _split(arguments: str) -> List[str]:
    """At commas outside of parentheses."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def enumerations(text: str) -> Dict[str, int]:
    """The statuses and dtypes of tenon/backend.h, and the greatest rank."""
    found = {name: int(value) for name, value in re.findall(r"^  (TENON_\w+) = (\d+),?", text, flags=re.M)}
    found["TENON_MAX_RANK"] = int(re.search(r"#define TENON_MAX_RANK (\d+)u", text).group(1))
    return found


def api_module(runtime: str, backend: str) -> str:
    """The text of tenon/_api.py."""
    known = enumerations(backend)
    header = read_header(runtime, known)
    statuses = {name[len("TENON_"):]: value for name, value in known.items() if re.search(rf"^  {name} = {value},?", backend.split("tenon_dtype;")[0], re.M)}
    dtypes = {name[len("TENON_DTYPE_"):].lower(): value for name, value in known.items() if name.startswith("TENON_DTYPE_")}
    del dtypes["none"], dtypes["count"]
    statuses = dict(list(statuses.items())[list(statuses).index("OK"):list(statuses).index("FORKED") + 1])
    lines = ["# SPDX-License-Identifier: Apache-2.0", "# Written by tools/python/generate.py from tenon/runtime.h; a test checks that it is up to date.",
             '"""The functions, structs and constants of tenon/runtime.h for ctypes. Addresses are integers; None is NULL."""',
             "from ctypes import CFUNCTYPE, Structure, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p",
             "from typing import Any, Dict, List, Tuple", "", f"MAX_RANK = {known['TENON_MAX_RANK']}",
             f"STATUSES: Dict[str, int] = {statuses!r}", f"DTYPES: Dict[str, int] = {dtypes!r}", ""]
    lines += [f"{name[len('TENON_'):]} = {value}" for name, value in header.constants.items()]
    for name, fields in header.structs:
        lines += ["", "", f"class {name}(Structure):"]
        if any(field == "struct_size" for field, _ in fields):
            lines[-1] += "  # struct_size is set by _library.sized()"
        lines += ["    _fields_ = ["] + [f'        ("{field}", {kind}),' for field, kind in fields] + ["    ]"]
    lines += ["", "", "# name -> result, arguments", "FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {"]
    for name, result, arguments in header.functions:
        lines.append(f'    "{name}": ({result}, [{", ".join(kind for _, kind in arguments)}]),')
    lines.append("}")
    return "\n".join(lines) + "\n"
