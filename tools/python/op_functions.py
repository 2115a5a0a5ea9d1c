# SPDX-License-Identifier: Apache-2.0
"""Writes tenon/ops.py: a function for each op of tenon/ops.def, as the library describes them."""
import re
import textwrap
from typing import Any, Dict, List

# Ops whose axis, which the library demands, has a default here.
LAST_AXIS = {"Softmax", "LogSoftmax", "ArgMax", "ArgMin", "TopK", "CumSum", "LayerNormalization", "RMSNormalization"}
FIRST_AXIS = {"Gather", "Concat", "Split", "GatherElements"}
NORMS = {"LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization", "BatchNormalization"}
SHAPED = {"Reshape", "Expand", "Slice", "Pad", "OneHot", "RandomUniform", "RandomNormal", "RandomBernoulli", "RandomPermutation", "MaxPoolGrad",
          "AveragePoolGrad"}
PYTHON = {"number": "float", "flag": "bool", "numbers": "Sequence[int]", "word": "str", "dtype": "DTypeLike"}
INTEGERS = {"axis", "k", "groups", "stream", "bits", "block_size", "size", "ignore_index"}


def operand_names(text: str) -> List[str]:
    """"a:T b:T? (x:T)*" -> ["a", "b?", "*x"]"""
    names = []
    for part in re.findall(r"\([^)]*\)\*|\S+", text):
        if part.startswith("("):
            group = [each.split(":")[0] for each in part[1:-2].split()]
            names.append("*" + (group[0] if len(group) == 1 else "groups"))
        else:
            names.append(part.split(":")[0] + ("?" if part.endswith("?") else ""))
    return names


def default_of(op: str, attribute: Dict[str, Any]) -> str:
    """" = -1", or "" for a required one."""
    name, kind = attribute["name"], attribute["kind"]
    if name == "axis" and "default" not in attribute:
        return " = -1" if op in LAST_AXIS else " = 0" if op in FIRST_AXIS else ""
    if name == "epsilon" and op in NORMS:
        return " = 1e-5"
    if name in ("axes",) and "default" not in attribute:
        return " = ()"
    if op == "TopK" and name in ("largest", "sorted"):
        return " = True"
    if "default" not in attribute:
        return ""
    value = attribute["default"]
    if kind == "flag":
        return f" = {bool(value)}"
    if value is None or value == []:
        return " = None"
    return f" = {int(value) if name in INTEGERS else value!r}"


def function_of(op: Dict[str, Any]) -> str:
    name, schema = op["name"], op["schema"]
    operands_text, results_text = schema.split(";")[0].split("->")
    operands, results = operand_names(operands_text), operand_names(results_text)
    parameters, values, gathered = [], [], ""
    for each in operands:
        plain = each.strip("*?")
        if each.startswith("*"):
            parameters.append(f"*{plain}: {'TensorLike' if plain != 'groups' else 'Sequence[TensorLike]'}")
            gathered = plain
        else:
            parameters.append(f"{plain}: TensorLike" + (" = None" if each.endswith("?") else ""))
            values.append(plain)
    optional = next((i for i, each in enumerate(operands) if each.endswith("?")), len(operands))
    parameters = [p if i < optional or p.endswith("= None") else p.replace("TensorLike", "TensorLike = None") for i, p in enumerate(parameters)]
    keywords, items = [], []
    attributes = sorted(op["attributes"], key=lambda each: default_of(name, each) != "")
    shaped = name in SHAPED or "given shape" in op["doc"]
    if shaped:
        keywords.append("shape: Sequence[int]")
    if name == "Split":
        keywords.append("sizes: Sequence[int]")
    for each in attributes:
        default = default_of(name, each)
        kind = "int" if each["name"] in INTEGERS else PYTHON[each["kind"]]
        if default == " = None":
            kind = f"Optional[{kind}]"
        keywords.append(f"{each['name']}: {kind}{default}")
        value = {"numbers": f"listed({each['name']})", "dtype": f"dtype_of({each['name']}).short", "flag": f"bool({each['name']})"}.get(each["kind"], each["name"])
        items.append(f'("{each["name"]}", {value})')
    required = [each for each in keywords if " = " not in each]
    keywords = required + [each for each in keywords if " = " in each]
    if shaped:
        items.append('("shape", listed(shape))')
    if name == "Split":
        items.append('("sizes", listed(sizes))')
    star = [] if gathered else ["*"]
    signature = ", ".join([*parameters, *star, *keywords, "device: DeviceLike = None"])
    several = len(results) > 1 or results[0].startswith("*")
    operands_value = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
    if gathered == "groups":
        operands_value = f"({''.join(v + ', ' for v in values)}*[each for group in groups for each in group],)"
    elif gathered:
        operands_value = f"({''.join(v + ', ' for v in values)}*{gathered},)"
    attribute_value = f"({', '.join(items)}{',' if len(items) == 1 else ''})" if items else "None"
    call = f'apply({op["id"]}, b"{name}", {operands_value}, {attribute_value}, device)'
    doc = textwrap.wrap(op["doc"].replace("\\", "\\\\"), 132)
    words = [f"{each['name']}: {', '.join(each['words'])}" for each in op["attributes"] if each["kind"] == "word"]
    lines = [f"def {op['stem']}({signature}) -> {'Tuple[Tensor, ...]' if several else 'Tensor'}:",
             f'    """{doc[0]}'] + [f"    {line}" for line in doc[1:]] + ["", f"    Operands  {operands_text.strip()} -> {results_text.strip()}"]
    lines += [f"    Names     {each}" for each in words]
    lines += ['    """', f"    return tuple({call})" if several else f"    return {call}[0]"]
    return "\n".join(lines)


def ops_module(ops: List[Dict[str, Any]]) -> str:
    """The text of tenon/ops.py."""
    head = '''# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from the ops of the library; a test checks that it is up to date.
"""A function for each op, which runs it at once on its operands' device, or on the default one.

Operands are tensors, arrays of other packages, or numbers, which become tensors of the first tensor's dtype. In the line "Operands", T is
one dtype, ? marks an operand that may be None, and (...)* repeats. plugins/ops.md has dtypes and tolerances. Errors are
InvalidArgumentError for operands and attributes that do not fit, UnsupportedError for what the device does not compute.
"""
from typing import Optional, Sequence, Tuple

from ._apply import apply, apply_op, listed
from ._context import DeviceLike
from ._dtypes import DTypeLike, dtype_of
from ._tensor import Tensor, TensorLike
'''
    names = ["apply_op", *[op["stem"] for op in ops]]
    listing = textwrap.fill(", ".join(f'"{name}"' for name in names), 132, initial_indent="    ", subsequent_indent="    ")
    return head + f"\n__all__ = [\n{listing},\n]\n\n\n" + "\n\n\n".join(function_of(op) for op in ops) + "\n"
