#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the Python reference for Sphinx, one for each public module: reference.py DIRECTORY. Needs the package and its library."""
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import List

import tenon


def modules() -> List[ModuleType]:
    """tenon, and its modules without those of the package's own use."""
    names = [each.name for each in pkgutil.iter_modules(tenon.__path__) if not each.name.startswith("_")]
    found = []
    for name in names:
        try:
            found.append(importlib.import_module(f"tenon.{name}"))
        except ImportError as error:  # onnx_backend needs the package onnx
            print(f"tenon.{name} is left out of the reference: {error}")
    return [tenon, *found]


def public_names(module: ModuleType) -> List[str]:
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if (inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name)))
            and str(getattr(module, name).__module__).startswith("tenon")]


def page(module: ModuleType) -> str:
    title = module.__name__
    lines = [title, "=" * len(title), "", f".. automodule:: {module.__name__}", "   :no-members:", ""]
    names = public_names(module)
    for heading, chosen, directive in (("Classes", inspect.isclass, "autoclass"), ("Functions", inspect.isfunction, "autofunction")):
        listed = [name for name in names if chosen(getattr(module, name))]
        if listed:
            lines += [heading, "-" * len(heading), ""]
        for name in listed:
            value = getattr(module, name)
            lines += [f".. {directive}:: {module.__name__}.{name}"]
            if inspect.isclass(value):
                lines += ["   :members:"]
                if value.__bases__ != (object,) and not any("._" in base.__module__ for base in value.__bases__):
                    lines += ["   :show-inheritance:"]
            lines += [""]
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    listed = modules()
    for module in listed:
        (folder / f"{module.__name__}.rst").write_text(page(module), encoding="utf-8")
    title = "Python reference"
    index = [title, "=" * len(title), "", "Generated from the docstrings; :doc:`the guide </docs/python>` is the place to start.", "", ".. toctree::", "   :maxdepth: 1", "",
             *[f"   {module.__name__}" for module in listed]]
    (folder / "index.rst").write_text("\n".join(index) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
