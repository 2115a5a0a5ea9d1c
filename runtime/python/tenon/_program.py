# SPDX-License-Identifier: Apache-2.0
"""Programs: compiled graphs with fixed shapes."""
import ctypes
from typing import Any, Dict, List, Tuple

from ._explanation import Explanation
from ._library import Object, check, json_of, lib, native, raise_error
from ._tensor import Tensor, TensorLike, asarray, wrap


class Program(Object):
    """A compiled graph, with its shapes fixed. It is called with arrays in the order of its inputs. Threads: one at a time."""

    __slots__ = ("_inputs", "_outputs", "_input_count", "_output_count")

    def __init__(self, handle: int):
        super().__init__(handle)
        info = self.info
        self._input_count, self._output_count = len(info["inputs"]), len(info["outputs"])
        self._inputs = (ctypes.c_void_p * max(self._input_count, 1))()
        self._outputs = ctypes.c_void_p * max(self._output_count, 1)

    @property
    def info(self) -> Dict[str, Any]:
        """{"inputs": [{name, dtype, shape}], "outputs", "memory"}"""
        return dict(json_of(lib.tenon_program_describe, self.handle))

    def explain(self) -> Explanation:
        """The placement report: device, kernel and reason of each node."""
        return Explanation(json_of(lib.tenon_program_explain, self.handle))

    def enable_profile(self, enabled: bool = True) -> None:
        """Makes later runs measure the time of each kernel, or not."""
        check(lib.tenon_program_enable_profile(self.handle, 1 if enabled else 0))

    @property
    def profile(self) -> List[Dict[str, Any]]:
        """{node, op, device, algorithm, nodes, duration_ns, begin_ns, flops, size_bytes} of each kernel of the last run; empty if it was not measured."""
        return list(json_of(lib.tenon_program_profile, self.handle))

    def __call__(self, *inputs: TensorLike) -> Tuple[Tensor, ...]:
        """The outputs, as new tensors. Errors: InvalidArgumentError for other counts, dtypes or shapes."""
        tensors = [each if type(each) is Tensor else asarray(each) for each in inputs]
        count = len(tensors)
        if native is not None and count <= 64 and self._output_count <= 64:
            made = native.run(self.handle, tuple([each.handle for each in tensors]), self._output_count)
            if type(made) is int:
                raise_error(made)
            return tuple([wrap(each, None) for each in made])
        given: Any = self._inputs if count == self._input_count else (ctypes.c_void_p * max(count, 1))()
        for i, each in enumerate(tensors):
            given[i] = each.handle
        outputs = self._outputs()
        error = lib.tenon_program_run(self.handle, given, count, outputs, self._output_count, None)
        if error is not None:
            check(error)
        return tuple([wrap(each, None) for each in outputs])
