# SPDX-License-Identifier: Apache-2.0
"""Placement reports as tables and pictures."""
import os
from html import escape
from typing import Any, Dict, List, Mapping, Optional, Union

from ._errors import InvalidArgumentError
from ._library import PathLike
from ._picture import Box, picture

_MAX_ROWS = 200  # of a table in a notebook
_MAX_BOXES = 200  # of a picture in a notebook


class Explanation(Dict[str, Any]):
    """A placement report: the dict of `tenon explain --format json`, which is shown as a table, and in notebooks with a picture.

    by_layer  whether a box of the picture is a layer of a model; otherwise it is a node.
    """

    def __init__(self, report: Mapping[str, Any], by_layer: bool = False):
        super().__init__(report)
        self.by_layer = by_layer

    @property
    def devices(self) -> List[str]:
        """The devices that compute, in the order of their first node."""
        return list(dict.fromkeys(str(each["device"]) for each in self["nodes"] if each["device"]))

    def _rows(self) -> List[List[str]]:
        rows = [["node", "op", "dtype", "device", "kernel", "reason"]]
        for each in self["nodes"]:
            reason = each["reason"] or ("runs when parameters change" if each["once"] else "")
            rows.append([each["node"], each["op"], each["dtype"], each["device"] or "none", each["algorithm"], reason])
        return rows

    def _sum(self) -> str:
        nodes = self["nodes"]
        return (f"{len(nodes)} nodes on {', '.join(self.devices) or 'no device'}, {self['moved']} moved; {self['kernels']} kernels; "
                f"{self['copies_inserted']} copies between devices, {self['bytes_copied_per_run']} bytes a run")

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows] + [self._sum()])

    def svg(self) -> str:
        """The picture: boxes in the order of computation, coloured by device; those that do not run where they were requested have a thick
        border; those without a kernel of their own, since another's includes them or they are views, a dashed one.
        A training step has the gradients in a second column, next to what they belong to."""
        return picture(_boxes(self["nodes"], self.by_layer))

    def save(self, path: PathLike) -> None:
        """Writes the picture to a .svg file. Errors: InvalidArgumentError for another ending; OSError."""
        if not os.fspath(path).endswith(".svg"):
            raise InvalidArgumentError(f"path: expected a file that ends in .svg, got '{os.fspath(path)}'")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg())

    def _repr_html_(self) -> str:
        boxes = _boxes(self["nodes"], self.by_layer)
        drawn = picture(boxes) if len(boxes) <= _MAX_BOXES else f"<p>The picture would have {len(boxes)} boxes: save(\"FILE.svg\") writes it.</p>"
        rows = self._rows()
        cell = "style='text-align: left'"
        head = "".join(f"<th {cell}>{escape(each)}</th>" for each in rows[0])
        body = "".join("<tr>" + "".join(f"<td {cell}>{escape(each)}</td>" for each in row) + "</tr>" for row in rows[1:_MAX_ROWS + 1])
        more = f"<p>{len(rows) - 1 - _MAX_ROWS} more nodes: print() shows all.</p>" if len(rows) - 1 > _MAX_ROWS else ""
        return (f"<div style='overflow-x: auto'>{drawn}</div><p>{escape(self._sum())}</p>"
                f"<details><summary>table of the nodes</summary><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</details>")


_GRADIENT = "gradient/"


def _boxes(nodes: List[Dict[str, Any]], by_layer: bool) -> List[Box]:
    """The boxes of the picture: layers, or nodes."""
    def name_of(node: str) -> str:
        if not by_layer:
            return node
        prefix = _GRADIENT if node.startswith(_GRADIENT) else ""
        return prefix + node[len(prefix):].split("/")[0]

    members: Dict[str, List[Dict[str, Any]]] = {}
    for each in nodes:
        members.setdefault(name_of(each["node"]), []).append(each)
    reporting = {each["device"] for each in nodes if each["algorithm"]}  # devices whose backends name their kernels
    boxes = []
    for name, group in members.items():
        kernels = list(dict.fromkeys(each["algorithm"] for each in group if each["algorithm"]))
        ops = list(dict.fromkeys(each["op"] for each in group))
        devices = list(dict.fromkeys(each["device"] or "no device" for each in group))
        details = []
        for each in group:
            kernel = f", kernel {each['algorithm']}" if each["algorithm"] else ", no kernel of its own" if each["device"] in reporting else ""
            reason = f": {each['reason']}" if each["reason"] else ""
            details.append(f"{each['node']}: {each['op']} {each['dtype']} on {each['device'] or 'no device'}{kernel}{reason}")
        inputs = [name_of(each) for node in group for each in node["inputs"]]
        boxes.append(Box(name, ", ".join(kernels or ops), " and ".join(devices), any(each["reason"] for each in group),
                         bool(kernels) or not reporting.intersection(devices), "\n".join(details),
                         [each for each in dict.fromkeys(inputs) if each != name], name[len(_GRADIENT):] if name.startswith(_GRADIENT) else None))
    return boxes


def explain(model: Any, inputs: Optional[Mapping[str, Any]] = None, *, batch_size: int = 32) -> Explanation:
    """Where each node of a model runs, by which kernel, and why: a table, and in notebooks a picture.

    model       a Model (its training step), a Program, an OnnxModel or InferenceSession, or a path of what tenon.load reads.
    inputs      of an OnnxModel or InferenceSession: arrays by name; what follows of their shapes is explained, nothing runs.
    batch_size  of a Model.
    Errors      InvalidArgumentError: a Model without shapes: build(...) it first; an OnnxModel without inputs.
    """
    from ._model import Model, load
    from ._onnx import OnnxModel
    from ._session import InferenceSession
    subject: Union[Any, Model] = load(model) if isinstance(model, (str, os.PathLike)) else model
    if isinstance(subject, InferenceSession):
        subject = subject.model
    if isinstance(subject, OnnxModel):
        if inputs is None:
            raise InvalidArgumentError(f"explain: expected inputs={{name: array}} for the inputs {subject.input_names} of an ONNX model, got none")
        return subject.explain(dict(inputs))
    if isinstance(subject, Model):
        return subject.explain(batch_size)
    if not hasattr(subject, "explain"):
        raise TypeError(f"explain: expected a Model, a Program, an OnnxModel, an InferenceSession or a path, got {type(subject).__name__}")
    made: Explanation = subject.explain()
    return made
