# SPDX-License-Identifier: Apache-2.0
"""The dtypes of tensors, and the names that other packages have for them."""
from typing import Any, Dict, Optional, Union

from ._api import DTYPES
from ._errors import InvalidArgumentError

_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "i4": "int4", "u4": "uint4", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f4e2m1": "float4_e2m1fn", "f8e8m0": "float8_e8m0fnu", "i2": "int2", "u2": "uint2",
}
_BITS = {"i4": 4, "u4": 4, "f4e2m1": 4, "i2": 2, "u2": 2, "bool": 8, "f8e4m3fn": 8, "f8e5m2": 8, "f8e4m3fnuz": 8, "f8e5m2fnuz": 8, "f8e8m0": 8}
# What struct and the buffer protocol call them.
_FORMATS = {
    "f16": "e", "f32": "f", "f64": "d", "c64": "Zf", "c128": "Zd", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H",
    "u32": "I", "u64": "Q", "bool": "?",
}


class DType:
    """A dtype, such as tenon.float32. It equals its name: tenon.float32 == "float32"."""

    __slots__ = ("code", "short", "name", "bits", "format", "typestr")

    def __init__(self, short: str, code: int):
        self.code = code
        self.short = short  # the library's name, "f32"
        self.name = _NAMES[short]
        self.bits = _BITS.get(short) or int("".join(filter(str.isdigit, short)))
        self.format: Optional[str] = _FORMATS.get(short)
        kind = {"b": "b"}.get(short[0], short[0])
        self.typestr = ("|b1" if short == "bool" else f"{'|' if self.bits == 8 else '<'}{kind}{self.bits // 8}") if self.format else None

    @property
    def itemsize(self) -> float:
        """Bytes of an element; a fraction for packed dtypes."""
        return self.bits // 8 if self.bits >= 8 else self.bits / 8

    @property
    def is_floating(self) -> bool:
        """Whether it is a real floating-point dtype."""
        return self.short[0] in "f" or self.short == "bf16"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex dtype."""
        return self.short[0] == "c"

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer; bool is none."""
        return self.short[0] in "iu"

    def __repr__(self) -> str:
        return f"tenon.{'bool_' if self.name == 'bool' else self.name}"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.code == other.code
        try:
            return dtype_of(other).code == self.code
        except (InvalidArgumentError, TypeError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return dtype_of, (self.name,)


BY_CODE: Dict[int, DType] = {code: DType(short, code) for short, code in DTYPES.items()}
_BY_NAME: Dict[str, DType] = {}
for _each in BY_CODE.values():
    _BY_NAME[_each.name] = _BY_NAME[_each.short] = _each
_BY_NAME.update(half=_BY_NAME["f16"], float=_BY_NAME["f32"], double=_BY_NAME["f64"], int=_BY_NAME["i64"], long=_BY_NAME["i64"],
                bool_=_BY_NAME["bool"], float4_e2m1=_BY_NAME["f4e2m1"])
_OF_TYPES: Dict[type, str] = {float: "f32", int: "i64", bool: "bool", complex: "c64"}

DTypeLike = Union[DType, str, type, Any]


def dtype_of(value: Any) -> DType:
    """The dtype for a tenon.DType, a name ("float32", "f32"), float, int or bool, or a dtype of NumPy, PyTorch or JAX.

    Errors  InvalidArgumentError: no dtype of tensors.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _OF_TYPES:
        return _BY_NAME[_OF_TYPES[value]]
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    found = _BY_NAME.get(str(name).split(".")[-1])
    if found is None:
        raise InvalidArgumentError(f"dtype: expected one of {', '.join(each.name for each in BY_CODE.values())}, got {value!r}")
    return found


def of_format(text: Optional[str], itemsize: int) -> Optional[DType]:
    """The dtype of the buffer protocol's format, in the byte order of the machine; None: there is none."""
    import sys
    code = text or "B"
    if code[0] in "@=" or code[0] == ("<" if sys.byteorder == "little" else ">"):
        code = code[1:]
    if code in ("Zf", "Zd"):
        return _BY_NAME[{"Zf": "c64", "Zd": "c128"}[code]]
    if code == "?":
        return _BY_NAME["bool"]
    if code in ("e", "f", "d"):
        return _BY_NAME[f"f{itemsize * 8}"]
    if len(code) == 1 and code in "bhilqn":
        return _BY_NAME[f"i{itemsize * 8}"]
    if len(code) == 1 and code in "BHILQN":
        return _BY_NAME[f"u{itemsize * 8}"]
    return None


def promoted(a: DType, b: DType) -> DType:
    """The dtype of an operation on both, as in PyTorch: bool, then integers, then floating point; the wider one of a kind.

    A signed and an unsigned integer become int32 or int64, which backends compute with.
    """
    if a is b:
        return a
    if a.is_floating != b.is_floating:
        return a if a.is_floating else b
    if a.is_floating:
        if a.bits == b.bits:
            return _BY_NAME["f32"]  # f16 with bf16
        return a if a.bits > b.bits else b
    if a.short == "bool" or b.short == "bool":
        return b if a.short == "bool" else a
    if not (a.is_integer and b.is_integer):
        raise InvalidArgumentError(f"dtypes: expected two real ones, got {a} and {b}")
    if a.short[0] == b.short[0]:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.short[0] == "i" else (b, a)
    return _BY_NAME["i32" if signed.bits <= 32 and unsigned.bits < 32 else "i64"]


float16, bfloat16, float32, float64 = (_BY_NAME[_name] for _name in ("f16", "bf16", "f32", "f64"))
int8, int16, int32, int64 = (_BY_NAME[_name] for _name in ("i8", "i16", "i32", "i64"))
uint8, uint16, uint32, uint64 = (_BY_NAME[_name] for _name in ("u8", "u16", "u32", "u64"))
bool_, complex64, complex128 = (_BY_NAME[_name] for _name in ("bool", "c64", "c128"))
