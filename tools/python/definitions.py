# SPDX-License-Identifier: Apache-2.0
"""Writes tenon/layers.py, losses.py and their like: a function for each layer, loss and so on that the readers of YAML know."""
import keyword
import re
import textwrap
from typing import Dict, List, Tuple

Keys = List[Tuple[str, str]]  # key, what it is

WORDS = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN", "lrn": "LRN", "relu": "ReLU", "relu6": "ReLU6", "elu": "ELU", "selu": "SELU", "gelu": "GELU",
         "prelu": "PReLU", "silu": "SiLU", "glu": "GLU", "leaky_relu": "LeakyReLU", "gelu_tanh": "GELUTanh", "lp_pool1d": "LpPool1D",
         "adamw": "AdamW", "sgd": "SGD", "rmsprop": "RMSprop", "radam": "RAdam", "nadam": "NAdam", "amsgrad": "AMSGrad", "onnx": "ONNX", "ctc": "CTC",
         "mse": "MSE", "mae": "MAE", "nll": "NLL", "bce": "BCE", "kld": "KLD", "half_mse": "HalfMSE", "rms_norm": "RMSNorm", "csv": "CSV"}
TITLES = {
    "layer": ("layers", "Layers, for tenon.Sequential. The keys are those of a model.yaml (docs/yaml.md), which has their meaning."),
    "initializer": ("initializers", "Initial values of parameters, for keys of layers such as kernel_initializer."),
    "loss": ("losses", "Losses, for the argument `loss` of Model.compile."),
    "metric": ("metrics", "Metrics, for the argument `metrics` of Model.compile."),
    "optimizer": ("optimizers", "Optimizers, for the argument `optimizer` of Model.compile."),
    "schedule": ("schedules", "Schedules of the learning rate, for the key `learning_rate` of an optimizer."),
    "callback": ("callbacks", "Callbacks of Model.fit: the library's, and Callback for those of Python."),
}
OWN_KEY = {"layer": "", "callback": "", "schedule": "schedule"}


def sections(schema: str) -> Dict[str, Dict[str, Keys]]:
    """kind -> name -> keys"""
    found: Dict[str, Dict[str, Keys]] = {}
    keys: Keys = []
    for line in schema.splitlines():
        if match := re.fullmatch(r"# (layer|initializer|loss|metric|optimizer|schedule|callback) (\w+)", line):
            keys = found.setdefault(match.group(1), {}).setdefault(match.group(2), [])
        elif match := re.fullmatch(r"#   (\w+): (.*)", line):
            keys.append((match.group(1), match.group(2)))
        elif not line.startswith("#   "):
            keys = []
    return found


def class_name(name: str) -> str:
    if name in WORDS:
        return WORDS[name]
    return "".join(re.sub(r"(\d)d$", r"\1D", part[:1].upper() + part[1:]) for part in name.split("_"))


def type_of(text: str) -> str:
    if text.startswith("an integer of at least 1, or") or "see docs" in text:
        return "Any"
    for start, kind in (("an integer", "int"), ("a number, or", "Any"), ("a number", "float"), ("true or false", "bool"), ("a list", "Sequence[Any]"),
                        ("a name, or", "Any"), ("a name", "str"), ("the name", "str"), ("a text", "str"), ("a path", "str"), ("a device", "str")):
        if text.startswith(start):
            return kind
    return "Any"


def function_of(kind: str, name: str, keys: Keys) -> str:
    own = OWN_KEY.get(kind, "name")
    keys = [(key, text) for key, text in keys if key != own or not own]
    required = [(key, text) for key, text in keys if text.endswith("; required")]
    optional = [(key, text) for key, text in keys if not text.endswith("; required")]
    argument = {key: key + "_" if keyword.iskeyword(key) else key for key, _ in keys}
    parameters = [f"{argument[key]}: {type_of(text)}" for key, text in required]
    if optional:
        parameters += ["*"] + [f"{argument[key]}: Optional[{type_of(text)}] = None".replace("Optional[Any]", "Any") for key, text in optional]
    signature = f"def {class_name(name)}({', '.join(parameters)})~->~Definition:"  # a line does not break at ~
    head = [line.replace("~", " ") for line in textwrap.wrap(signature, 140, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)]
    lines = [*head, f'    """{name}' + ('"""' if not keys else "")]
    if keys:
        width = max(len(key) for key, _ in keys)
        lines.append("")
        for key, text in [*required, *optional]:
            lines += textwrap.wrap(f"{argument[key]:<{width}}  {text.replace('; required', '')}", 132, initial_indent="    ", subsequent_indent=" " * (width + 6),
                                   break_long_words=False)
        lines.append('    """')
    values = "{" + ", ".join(f'"{key}": {argument[key]}' for key, _ in keys) + "}"
    lines += textwrap.wrap(f'return Definition("{kind}", "{name}", {values})', 140, initial_indent="    ", subsequent_indent=" " * 8, break_long_words=False)
    return "\n".join(lines)


def defaults_of(names: Dict[str, Keys]) -> str:
    """The table of the keys' defaults, for those who compute with them."""
    lines = ["DEFAULTS: Dict[str, Dict[str, Any]] = {  # of the keys that have one"]
    for name, keys in names.items():
        found = {key: text.rpartition("; default ")[2] for key, text in keys if "; default " in text and key != "name"}
        values = {key: {"null": None, "true": True, "false": False}.get(value, value) for key, value in found.items()}
        numbers = {key: float(value) if isinstance(value, str) and re.fullmatch(r"[\d.e+-]+", value) else value for key, value in values.items()}
        lines += textwrap.wrap(f'"{name}": {numbers!r},', 140, initial_indent="    ", subsequent_indent=" " * 8, break_long_words=False)
    return "\n".join([*lines, "}"])


def definition_modules(schema: str) -> Dict[str, str]:
    """file name -> text"""
    made = {}
    found = sections(schema)
    for kind, (module, title) in TITLES.items():
        names = found[kind]
        own = ["Callback", "LambdaCallback"] if kind == "callback" else []
        listing = textwrap.fill(", ".join(f'"{each}"' for each in [*own, *map(class_name, names)]), 132, initial_indent="    ", subsequent_indent="    ")
        text = ["# SPDX-License-Identifier: Apache-2.0",
                "# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.",
                f'"""{title} None stands for the default."""', "from typing import Any, Optional, Sequence", ""]
        text += ["from ._callback import Callback, LambdaCallback"] if own else []
        text += ["from ._definition import Definition", "", f"__all__ = [\n{listing},\n]"]
        body = "\n\n\n".join(function_of(kind, name, keys) for name, keys in names.items())
        if "Sequence[" not in body:
            text[3] = text[3].replace(", Sequence", "")
        if "Optional[" not in body:
            text[3] = text[3].replace(", Optional", "")
        if not re.search(r"\bAny\b", body):
            text[3] = text[3].replace("Any, ", "")
        if text[3] == "from typing import Any" and not re.search(r"\bAny\b", body):
            text[3:5] = []
        if kind == "optimizer":
            body = defaults_of(names) + "\n\n\n" + body
            text[3] = text[3].replace("Any, ", "Any, Dict, ")
        made[f"{module}.py"] = "\n".join(text) + "\n\n" + ("" if kind == "optimizer" else "\n") + body + "\n"
    return made
