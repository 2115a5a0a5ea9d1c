# SPDX-License-Identifier: Apache-2.0
"""Writes tenon/blas.py: a function for each routine of tenon/blas.def, from what tenon_blas_routines tells of it."""
import textwrap
from typing import Any, Dict, List

# Parameters of the functions of a signature class, in SciPy's order; those of packed and banded routines differ only in the form of the matrix.
PARAMETERS = {
    "rotg": "a, b", "rotmg": "d1, d2, x1, y1", "rot": "x, y, c, s, *, overwrite_x, overwrite_y", "rotm": "x, y, param, *, overwrite_x, overwrite_y",
    "xy": "x, y, *, overwrite_y", "scal": "alpha, x, *, overwrite_x", "axpy": "x, y, *, alpha, overwrite_y", "axpby": "x, y, *, alpha, beta, overwrite_y",
    "dot": "x, y", "reduce": "x", "gemv": "alpha, a, x, *, beta, y, trans, overwrite_y", "symv": "alpha, a, x, *, beta, y, lower, overwrite_y",
    "trmv": "a, x, *, lower, trans, diag, overwrite_x", "ger": "alpha, x, y, *, a, overwrite_a", "syr": "alpha, x, *, a, lower, overwrite_a",
    "gemm": "alpha, a, b, *, beta, c, trans_a, trans_b, overwrite_c", "symm": "alpha, a, b, *, beta, c, side, lower, overwrite_c",
    "syrk": "alpha, a, *, beta, c, trans, lower, overwrite_c", "trmm": "alpha, a, b, *, side, lower, trans, diag, overwrite_b",
    "geam": "alpha, a, beta, b, *, trans_a, trans_b", "dgmm": "a, x, *, side", "gemm_strided_batched": "alpha, a, b, *, beta, c, trans_a, trans_b, overwrite_c",
}
OF_ROUTINE = {
    "swap": "x, y, *, overwrite_x, overwrite_y", "sdsdot": "x, y, *, alpha", "gbmv": "m, n, kl, ku, alpha, a, x, *, beta, y, trans, overwrite_y",
    "gemmt": "alpha, a, b, *, beta, c, trans_a, trans_b, lower, overwrite_c",
    **dict.fromkeys(("syr2", "her2", "spr2", "hpr2"), "alpha, x, y, *, a, lower, overwrite_a"),
    **dict.fromkeys(("syr2k", "her2k"), "alpha, a, b, *, beta, c, trans, lower, overwrite_c"),
}
LEFT_OUT = ("gemm_batched", )  # takes arrays of addresses; gemm_strided_batched takes tensors
TYPES = {**dict.fromkeys(("alpha", "beta", "c", "s", "d1", "d2", "x1", "y1"), "Number"), **dict.fromkeys(("m", "n", "kl", "ku"), "int"),
         **dict.fromkeys(("lower", "trans", "trans_a", "trans_b", "diag", "side"), "int")}
DEFAULTS = {"alpha": "1", "beta": "0", "y": "None", "a": "None", "c": "None"}
SCALARS = ("rotg", "rotmg", "rot")  # whose a, b and c are numbers


def parameters_of(routine: Dict[str, Any]) -> List[str]:
    text = OF_ROUTINE.get(routine["name"], PARAMETERS[routine["signature"]])
    made, optional = [], False
    for name in text.split(", "):
        optional = optional or name == "*"
        if name == "*":
            made.append(name)
            continue
        number = name in ("alpha", "beta", "s", "d1", "d2", "x1", "y1") or (routine["signature"] in SCALARS and name in ("a", "b", "c"))
        kind = "bool" if name.startswith("overwrite") else "Number" if number else TYPES.get(name, "TensorLike") if name != "c" else "TensorLike"
        default = {"bool": "False", "int": "0"}.get(kind, DEFAULTS.get(name, "None"))
        if routine["name"] in ("axpby", ) and name == "beta":
            default = "1"
        if routine["name"] == "sdsdot":
            default = "0"
        made.append(f"{name}: {kind}" + (f" = {default}" if optional else ""))
    return made


def result_of(routine: Dict[str, Any]) -> str:
    if routine["result"]:
        return "int" if routine["result"] == "i64" else "Number"
    if routine["name"] in ("swap", "rot", "rotm"):
        return "Tuple[Tensor, Tensor]"
    return {"rotg": "Tuple[Number, Number]"}.get(routine["signature"], "Tensor")


def function_of(routine: Dict[str, Any]) -> str:
    parameters = parameters_of(routine)
    names = [each.split(":")[0] for each in parameters if each != "*"]
    signature = f"def {routine['name']}({', '.join(parameters)})~->~{result_of(routine)}:".replace(": ", ":~").replace(" = ", "~=~")
    head = [line.replace("~", " ") for line in textwrap.wrap(signature, 140, subsequent_indent=" " * (len(routine["name"]) + 5), break_long_words=False,
                                                               break_on_hyphens=False)]
    doc = textwrap.wrap(f'"""{routine["formula"]}"""', 136, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    call = textwrap.wrap(f"result: {result_of(routine).replace(', ', ',~')} = _blas.{routine['signature']}({', '.join([repr(routine['name']).replace(chr(39), chr(34)), *names])})", 136, initial_indent="    ",
                         subsequent_indent=" " * 8, break_long_words=False)
    return "\n".join([*head, *doc, *(line.replace("~", " ") for line in call), "    return result"])


def blas_modules(routines: List[Dict[str, Any]]) -> Dict[str, str]:
    """file name -> text"""
    chosen = [each for each in routines if each["name"] not in LEFT_OUT]
    fields = {each["signature"]: each["fields"] for each in chosen}
    table = ["# SPDX-License-Identifier: Apache-2.0",
             "# Written by tools/python/generate.py from tenon_blas_routines; a test checks that it is up to date.",
             '"""The routines of BLAS and the fields of their records, for tenon._blas."""', "from typing import Dict, NamedTuple, Tuple", "", "",
             "class Routine(NamedTuple):", '    """A line of tenon/blas.def."""', "", "    number: int", "    signature: str",
             "    real: Tuple[str, ...]  # scalars that are real for complex operands", "    result: str  # dtype: call, real, f64 or i64; \"\" without a result", "", "",
             "# signature -> fields after struct_size, each with its kind in tenon/blas_args.def", "FIELDS: Dict[str, Tuple[Tuple[str, str], ...]] = {"]
    for signature, listed in fields.items():
        pairs = ", ".join(f'("{each["name"]}", "{each["kind"]}")' for each in listed)
        table += textwrap.wrap(f'"{signature}": ({pairs}),', 140, initial_indent="    ", subsequent_indent=" " * 8, break_long_words=False)
    table += ["}", "ROUTINES: Dict[str, Routine] = {"]
    for each in chosen:
        real = "(" + "".join(f'"{name}", ' for name in each["real"]).rstrip() + ")" if each["real"] else "()"
        table.append(f'    "{each["name"]}": Routine({each["id"]}, "{each["signature"]}", {real}, "{each["result"] or ""}"),')
    listing = textwrap.fill(", ".join(f'"{each["name"]}"' for each in chosen), 132, initial_indent="    ", subsequent_indent="    ")
    head = ["# SPDX-License-Identifier: Apache-2.0",
            "# Written by tools/python/generate.py from tenon_blas_routines; a test checks that it is up to date.",
            '"""BLAS, on tensors and arrays: the routines of tenon/blas.def, with the arguments of scipy.linalg.blas and without letters for dtypes.',
            "",
            "Operands are vectors of rank 1 with any stride and matrices of rank 2, of float32, float64, complex64 or complex128. They are used in place on the",
            "device of the first tensor among them, or the default one; matrices without contiguous rows are copied. The result is a new tensor; with",
            "overwrite_y=True (and likewise) it is the operand itself, changed. Packed and banded matrices have the form that they have in SciPy.",
            "",
            "    trans, trans_a, trans_b  0: the matrix, 1: its transpose, 2: its conjugate transpose",
            "    lower                    0: the upper triangle of the matrix is used, 1: the lower one",
            "    side                     0: the matrix is on the left, 1: on the right",
            "    diag                     1: the diagonal is one, whatever it has",
            "",
            "Errors  InvalidArgumentError: other ranks or sizes; UnsupportedError: a routine or dtype that the backend does not offer.",
            '"""',
            "from typing import Tuple, Union", "", "from . import _blas", "from ._tensor import Tensor, TensorLike", "",
            "Number = Union[int, float, complex]", "", f"__all__ = [\n{listing},\n]"]
    return {"_blas_table.py": "\n".join([*table, "}"]) + "\n", "blas.py": "\n".join(head) + "\n\n\n" + "\n\n\n".join(map(function_of, chosen)) + "\n"}
