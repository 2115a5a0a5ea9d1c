# SPDX-License-Identifier: Apache-2.0
"""Models in ONNX files, run for any shapes."""
import ctypes
import os
from typing import Any, Dict, List, Optional, Sequence, Union

from ._context import Context, DeviceLike, default_context
from ._errors import InvalidArgumentError
from ._explanation import Explanation
from ._library import Object, PathLike, check, encoded, handles, json_of, lib, object_of, path_of, texts
from ._tensor import Tensor, TensorLike, asarray, wrap


class OnnxModel(Object):
    """A model of an ONNX file, or of its bytes, for inference. Threads: one at a time.

    model   a path, or the bytes of a file.
    device  for all of it; None: the context's default.
    Errors  InvalidArgumentError: the file cannot be read or is damaged; UnsupportedError: all that cannot be imported, in one message.
    """

    __slots__ = ("context", "info", "input_names", "output_names", "_texts", "_last_names", "_inputs", "_outputs", "_count", "_arrays")

    def __init__(self, model: Union[PathLike, bytes], *, device: DeviceLike = None, context: Optional[Context] = None):
        self.context = context or default_context()
        name = encoded(device if device is None or isinstance(device, str) else device.name)
        if isinstance(model, (bytes, bytearray)):
            handle = object_of(lib.tenon_onnx_from_memory, self.context.handle, (ctypes.c_char * len(model)).from_buffer_copy(model), len(model), None, name)
        else:
            if not os.path.isfile(os.fspath(model)):
                raise InvalidArgumentError(f"onnx: expected the path of a file, got '{os.fspath(model)}', which is none")
            handle = object_of(lib.tenon_onnx_load, self.context.handle, path_of(model), name)
        super().__init__(handle)
        self.info: Dict[str, Any] = json_of(lib.tenon_onnx_describe, handle)  # inputs, outputs, metadata, operators
        self.input_names: List[str] = [str(each["name"]) for each in self.info["inputs"]]
        self.output_names: List[str] = [str(each["name"]) for each in self.info["outputs"]]
        self._count = len(self.output_names)
        self._outputs = ctypes.c_void_p * max(self._count, 1)
        self._last_names: Optional[List[str]] = None
        self._texts: Any = None
        self._inputs: Any = None

    def run(self, names: List[str], tensors: Sequence[Tensor], into: Sequence[Optional[Tensor]] = (), run_options: Any = None) -> List[Tensor]:
        """All outputs, for inputs by name; `into`: tensors that get them, None for those that become new ones."""
        if names != self._last_names:  # a copy is kept for the next call, which mostly has the same
            self._texts, self._inputs = texts(names), ctypes.c_void_p * max(len(names), 1)
            self._last_names = list(names)
        inputs = self._inputs(*[each.handle for each in tensors])
        outputs = self._outputs(*[None if each is None else each.handle for each in into])
        error = lib.tenon_onnx_run(self.handle, self._texts, inputs, len(tensors), outputs, self._count, run_options)
        if error is not None:
            check(error)
        given = [*into, *[None] * (self._count - len(into))]
        return [target if target is not None else wrap(each, None) for each, target in zip(outputs, given)]

    def __call__(self, **inputs: TensorLike) -> Dict[str, Tensor]:
        """The outputs by name, for inputs by name."""
        tensors = [asarray(each) for each in inputs.values()]
        return dict(zip(self.output_names, self.run(list(inputs), tensors)))

    def explain(self, inputs: Dict[str, TensorLike]) -> Explanation:
        """The placement report for inputs like these."""
        tensors = [asarray(each) for each in inputs.values()]
        return Explanation(json_of(lib.tenon_onnx_explain, self.handle, texts(list(inputs)), handles([*tensors]), len(tensors)))
