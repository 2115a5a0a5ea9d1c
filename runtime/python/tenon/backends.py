# SPDX-License-Identifier: Apache-2.0
"""The backends that were found, and what became of them."""
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence

from . import _library
from ._context import Context, default_context
from ._errors import Error

if TYPE_CHECKING:
    import subprocess

_list = list


class Backend(NamedTuple):
    """A file that could be a backend."""

    name: str
    path: str
    origin: str  # which search place: "next to the library", "package tenon-backend-acme"
    healthy: bool
    version: str
    devices: List[str]
    description: str
    problem: str  # "" if healthy
    remedy: str


class Backends(List[Backend]):
    """A list of backends that is shown as a table."""

    def _rows(self) -> List[List[str]]:
        return [["backend", "state", "version", "devices", "file"]] + [
            [each.name, "healthy" if each.healthy else each.problem, each.version, ", ".join(each.devices), each.path] for each in self
        ]

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[-1]]) for row in rows)

    def _repr_html_(self) -> str:
        from html import escape
        rows = self._rows()
        left = "style='text-align: left'"
        head = "".join(f"<th {left}>{escape(cell)}</th>" for cell in rows[0])
        body = "".join("<tr>" + "".join(f"<td {left}>{escape(cell)}</td>" for cell in row[:-1])
                       + f"<td style='text-align: left; overflow-wrap: anywhere; min-width: 16em'>{escape(row[-1])}</td></tr>" for row in rows[1:])  # paths are long
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def list(context: Optional[Context] = None) -> Backends:  # noqa: A001 - the name that users look for
    """The backends of a context, healthy or not, in the order in which they were found."""
    records: List[Dict[str, Any]] = (context or default_context()).load_report["records"]
    return Backends(
        Backend(each["name"], each["path"], each["origin"], each["healthy"], each["version"], _list(each["devices"]), each["description"],
                "" if each["healthy"] else f"{each['status']}: {each['text']}", each["remedy"]) for each in records)


def _program(name: str) -> str:
    """The path of a program of the distribution: of the wheel or the build that has the library, or on PATH."""
    import shutil
    if sys.platform == "win32":
        name += ".exe"
    here = os.path.dirname(os.path.abspath(_library.lib._name))
    path = os.path.join(os.path.dirname(here), "bin", name)
    if os.access(path, os.X_OK) and os.path.isfile(path):
        return path
    script = os.path.join(os.path.dirname(sys.executable), name)
    found = shutil.which(name)
    if found and os.path.realpath(found) != os.path.realpath(script):
        return found
    raise FileNotFoundError(f"expected the program {name} in {os.path.dirname(path)}, where a wheel of tenon puts it, or on PATH: reinstall tenon")


def conformance(backend: str, arguments: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
    """Tests a backend with the conformance kit, as `tenon conformance` does; the result has returncode 0 if it conforms, and the report in stdout.

    backend  its name, or the path of its file.
    """
    import subprocess
    chosen = ["--plugin", backend] if os.path.exists(backend) else ["--backend", backend]
    return subprocess.run([_program("tenon"), "conformance", *chosen, *arguments], capture_output=True, encoding="utf-8", check=False)


class Diagnosis:
    """What doctor() found. `healthy`: at least one backend is. The text is for people and bug reports."""

    def __init__(self, healthy: bool, text: str):
        self.healthy = healthy
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape
        return f"<pre>{escape(self.text)}</pre>"


def doctor() -> Diagnosis:
    """What a bug report needs: versions, the library, backends with causes and remedies, devices, packages that exchange arrays."""
    import platform
    from importlib import metadata
    lines = [f"tenon {_library.version()}, library {_library.lib._name}",
             f"python {platform.python_version()} ({platform.python_implementation()}), {sys.executable}",
             f"system {platform.platform()}",
             f"calls by {'ctypes alone' if _library.native is None else 'the native module, and ctypes'}"]
    for package in ("numpy", "torch", "jax", "onnx", "onnxruntime", "matplotlib"):
        try:
            lines.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{package} not installed")
    lines += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("TENON_")]
    try:
        context = default_context()
    except Error as error:
        return Diagnosis(False, "\n".join([*lines, f"no context: {error}"]))
    found = list(context)
    for each in found:
        lines.append(f"backend {each.name}: {'healthy' if each.healthy else each.problem} ({each.path}, {each.origin})")
        if not each.healthy and each.remedy:
            lines.append(f"  remedy: {each.remedy}")
    lines += [f"device {each['name']} ({each['alias']}): {each['product']}, {each['description']}" for each in context.describe_devices()]
    return Diagnosis(any(each.healthy for each in found), "\n".join(lines))
