# SPDX-License-Identifier: Apache-2.0
"""Traces: functions of Python run once with tensors that stand for values of a graph, which becomes a program."""
import ctypes
import traceback
import weakref
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple, Union

from . import _api
from ._apply import capacity_of, dtype_of_numbers, encoded_attributes
from ._context import Device, DeviceLike, device_of
from ._dtypes import BY_CODE, DType
from ._errors import TraceError
from ._library import Object, check, encoded, integers, lib, object_of, sized
from ._tensor import Tensor, asarray
from ._tracing import state

_byref = ctypes.byref
_NO_INDEX = 0xffffffff
Source = Union[Tensor, Callable[[], Tensor]]


class Graph(Object):
    """A graph of the library."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(object_of(lib.tenon_graph_create))


def _user_line() -> str:
    """Where the traced function is, for messages: " (model.py:12)"."""
    package = __file__.rpartition("_traced.py")[0]
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith(package):
            return f" ({frame.filename}:{frame.lineno})"
    return ""


def _nothing(handle: int) -> None:
    """A traced tensor has no object of the library to release."""


class TracedTensor(Tensor):
    """A value of a graph that is being traced: it has a dtype and a shape, and no elements."""

    __slots__ = ("_trace", "_value")
    _release = staticmethod(_nothing)

    def __init__(self, trace: "GraphTrace", value: int):
        Object.__init__(self, 0)
        self._device = None
        self._known = None
        self._trace = trace
        self._value = value

    @property
    def _info(self) -> _api.TenonTensorInfo:
        if self._known is None:
            self._trace.expect_open()
            found = sized(_api.TenonValueInfo)
            check(lib.tenon_graph_value_info(self._trace.graph.handle, self._value, _byref(found)))
            info = _api.TenonTensorInfo(dtype=found.dtype, rank=found.rank, is_dense=1, element_count=1)
            for axis in reversed(range(found.rank)):
                info.shape[axis] = found.shape[axis]
                info.strides[axis] = info.element_count
                info.element_count *= found.shape[axis]
            info.size_bytes = int(info.element_count * BY_CODE[info.dtype].itemsize)
            self._known = info
        return self._known

    @property
    def device(self) -> Optional[Device]:
        """The device that the program is made for."""
        return self._trace.device

    def __repr__(self) -> str:
        return f"<traced tensor {self.dtype}{self.shape} of {self._trace.name}>"

    def _repr_html_(self) -> str:
        from html import escape
        return escape(repr(self))

    # -------------------------------------------------------------- what a value of a graph cannot do

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        self._trace.expect_open()
        raise TraceError(f"{what}: expected a tensor with elements, got the traced {self.dtype}{self.shape} of "
                         f"{self._trace.name}{_user_line()}, a function that is run once, without elements, to make a program of it: {remedy}")

    @property
    def handle(self) -> int:
        """Errors: TraceError."""
        self._refuse("tensor", "use operations of tenon.Tensor and tenon.ops, or call it outside of the traced function")

    def _elements(self, what: str) -> NoReturn:
        self._refuse(what, "compute with operations of tenon.Tensor and tenon.ops, or return the tensor and read its elements outside of the traced "
                     "function")

    def _number(self, what: str) -> NoReturn:
        self._refuse(what, "keep it a tensor, or pass the number to the traced function as a number of Python, which makes a program for each value")

    def __bool__(self) -> bool:
        self._refuse("bool", "Python's if, while, and, or, not cannot depend on elements: use tenon.ops.where(condition, a, b), which computes both, "
                     "& | ~ in place of and, or, not, or decide outside of the traced function")

    def __float__(self) -> float:
        self._number("float")

    def __int__(self) -> int:
        self._number("int")

    def __index__(self) -> int:
        self._number("index")

    def item(self) -> Any:
        """Errors: TraceError."""
        self._number("item()")

    def numpy(self) -> Any:
        """Errors: TraceError."""
        self._elements("numpy()")

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        self._elements("a function of NumPy")

    def __dlpack__(self, **_: Any) -> Any:
        self._elements("__dlpack__")

    def __dlpack_device__(self) -> Tuple[int, int]:
        self._elements("__dlpack_device__")

    def memoryview(self) -> memoryview:
        """Errors: TraceError."""
        self._elements("memoryview()")

    def tolist(self) -> Any:
        """Errors: TraceError."""
        self._elements("tolist()")

    def cpu(self) -> Tensor:
        """Errors: TraceError."""
        self._elements("cpu()")

    def nonzero(self) -> Tensor:
        """Errors: TraceError."""
        self._elements("nonzero()")

    def _change(self, what: str) -> NoReturn:
        self._refuse(what, "traced tensors are not changed in place: make a new one, by tenon.ops.where, concat or scatter_elements")

    def copy_(self, source: Any) -> Tensor:
        """Errors: TraceError."""
        self._change("copy_()")

    def fill_(self, value: Any) -> Tensor:
        """Errors: TraceError."""
        self._change("fill_()")

    def __setitem__(self, index: Any, value: Any) -> None:
        self._change("assignment to an index")

    # -------------------------------------------------------------- views, which are nodes here

    def _view(self, function: Any, *arguments: Any) -> Tensor:
        return VIEWS[function.__name__](self._trace.lift(self), *arguments)

    def _node(self, op: bytes, **attributes: Any) -> Tensor:
        return self._trace.apply(0, op, (self,), tuple(attributes.items()), None)[0]

    def _reshaped(self, rank: int, shape: Any) -> Tensor:
        sizes = tuple(shape[:rank])
        return self if sizes == self.shape else self._node(b"Reshape", shape=sizes)

    def _permuted(self, rank: int, order: Any) -> Tensor:
        return self._node(b"Transpose", perm=tuple(order[:rank]))

    def _expanded(self, rank: int, shape: Any) -> Tensor:
        sizes = tuple(shape[:rank])
        return self if sizes == self.shape else self._node(b"Expand", shape=sizes)

    def _unsqueezed(self, axis: int) -> Tensor:
        place = axis if axis >= 0 else axis + self.ndim + 1
        return self._node(b"Reshape", shape=self.shape[:place] + (1,) + self.shape[place:])

    def _sliced(self, axis: int, begin: int, end: int, step: int) -> Tensor:
        starts, steps, sizes = [0] * self.ndim, [1] * self.ndim, list(self.shape)
        starts[axis], steps[axis], sizes[axis] = begin, step, len(range(begin, end, step))
        return self if tuple(sizes) == self.shape and step == 1 else self._node(b"Slice", starts=tuple(starts), steps=tuple(steps), shape=tuple(sizes))

    def _selected(self, axis: int, index: int) -> Tensor:
        place = axis if axis >= 0 else axis + self.ndim
        begin = index if index >= 0 else index + self.shape[place]
        part = self._trace.lift(self._sliced(place, begin, begin + 1, 1))
        return part._node(b"Reshape", shape=self.shape[:place] + self.shape[place + 1:])

    def _contiguous(self) -> Tensor:
        return self


VIEWS: Dict[str, Callable[..., Tensor]] = {
    "tenon_tensor_reshape": TracedTensor._reshaped, "tenon_tensor_permute": TracedTensor._permuted, "tenon_tensor_expand": TracedTensor._expanded,
    "tenon_tensor_unsqueeze": TracedTensor._unsqueezed, "tenon_tensor_slice": TracedTensor._sliced, "tenon_tensor_select": TracedTensor._selected,
    "tenon_tensor_contiguous": TracedTensor._contiguous,
}


class GraphTrace:
    """One run of a traced function: a graph that grows with each operation.

    Tensors with elements that the function uses become inputs of the program, whose elements are read at each run; `freeze` makes them
    constants. `sources` are the inputs after the arguments: such tensors, and functions that make one for each run.
    """

    def __init__(self, name: str, device: Device, freeze: bool = False):
        self.name, self.device, self.freeze = name, device, freeze
        self.graph = Graph()
        self.is_open = True
        self.node_count = 0
        self.has_several_devices = False
        self.sources: List[Source] = []
        self.assigned: Dict[int, Tensor] = {}  # tensors that get another value, by id
        self.conditions: List[Tuple[Any, str, Any]] = []  # weak reference, attribute, value: what the trace relied on
        self._values: Dict[int, Tuple[Tensor, TracedTensor]] = {}  # of tensors with elements, by id
        self._constants: List[int] = []  # no gradient passes through these
        self._input_count = 0
        self._streams = 0
        self._key: Optional[TracedTensor] = None
        self._outer: Optional[GraphTrace] = None

    def __enter__(self) -> "GraphTrace":
        self._outer, state.trace = state.trace, self
        return self

    def __exit__(self, *_: Any) -> None:
        state.trace = self._outer

    def close(self) -> None:
        """Ends the trace: its tensors can no longer be used."""
        self.is_open = False
        self._values.clear()
        self.graph.close()

    def expect_open(self) -> None:
        """Errors: TraceError after the end of the trace."""
        if not self.is_open:
            raise TraceError(f"tensor: expected one with elements, got a traced tensor of {self.name}, whose trace has ended: a traced function "
                             "returns its results, and does not keep tensors in objects or globals")

    def expect_known(self, value: Any, what: str, remedy: str = "return the value, or assign it to an attribute of a tenon.nn.Module") -> None:
        """Errors: TraceError for a traced tensor, where one with elements is needed."""
        if isinstance(value, TracedTensor):
            value._refuse(what, remedy)

    def add_input(self, dtype: DType, shape: Tuple[int, ...]) -> TracedTensor:
        """The next input of the graph."""
        value = ctypes.c_uint32()
        name = f"input{self._input_count}".encode()
        check(lib.tenon_graph_input(self.graph.handle, name, dtype.code, len(shape), integers(shape), _byref(value)))
        self._input_count += 1
        return TracedTensor(self, value.value)

    def constant(self, tensor: Tensor) -> TracedTensor:
        """A constant with the elements that the tensor has now."""
        value = ctypes.c_uint32()
        check(lib.tenon_graph_constant(self.graph.handle, tensor.handle, None, _byref(value)))
        return TracedTensor(self, value.value)

    def lift(self, tensor: Tensor) -> TracedTensor:
        """The value of the graph for a tensor."""
        if isinstance(tensor, TracedTensor):
            if tensor._trace is not self:
                tensor._trace.expect_open()
                raise TraceError(f"tensor: expected one of the trace of {self.name}, got one of the trace of {tensor._trace.name}")
            return tensor
        known = self._values.get(id(tensor))
        if known is not None:
            return known[1]
        if self.freeze:
            made = self.constant(tensor)
        else:
            made = self.add_input(tensor.dtype, tensor.shape)
            self.sources.append(tensor)
        self._values[id(tensor)] = (tensor, made)
        return made

    def rebind(self, tensor: Tensor, value: TracedTensor) -> None:
        """Later uses of the tensor get the value."""
        self._values[id(tensor)] = (tensor, value)

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Sets the value of a tensor, for the rest of the trace and after each run. Errors: another dtype or shape; a frozen function."""
        if self.freeze:
            raise TraceError(f"{self.name}: a function with freeze=True cannot change the parameters and buffers of modules: call eval() first, or "
                             "leave freeze out")
        self.lift(tensor)
        self.assigned[id(tensor)] = tensor
        self.rebind(tensor, self.lift(value))

    def rely_on(self, owner: Any, attribute: str) -> Any:
        """An attribute of an object; the program is used only while it has this value."""
        value = owner.__dict__[attribute]
        self.conditions.append((weakref.ref(owner), attribute, value))
        return value

    def drawn_input(self, make: Callable[[], Tensor]) -> TracedTensor:
        """A key that `make` gives anew for each run."""
        self.sources.append(make)
        return self.add_input(BY_CODE[_api.DTYPES["u64"]], (2,))

    def random_key(self, make: Callable[[], Tensor]) -> Tuple[TracedTensor, int]:
        """(a key that `make` gives anew for each run, a stream that no other op of the trace has)"""
        if self._key is None:
            self._key = self.drawn_input(make)
        self._streams += 1
        return self._key, self._streams

    def apply(self, number: int, name: bytes, operands: Tuple[Any, ...], attributes: Optional[Tuple[Tuple[str, Any], ...]],
              device: DeviceLike) -> List[Tensor]:
        """Appends a node; as _apply.apply()."""
        self.expect_open()
        count = len(operands)
        inputs = (ctypes.c_uint32 * max(count, 1))()
        for i, each in enumerate(operands):
            if each is None:
                inputs[i] = _NO_INDEX
            else:
                dtype = dtype_of_numbers(operands) if isinstance(each, (bool, int, float)) else None
                inputs[i] = self.lift(each if isinstance(each, Tensor) else asarray(each, dtype))._value
        capacity = capacity_of(name, count)
        outputs = (ctypes.c_uint32 * capacity)()
        found = ctypes.c_uint64()
        graph = self.graph.handle
        where = device_of(device, self.device.context)
        if where is not None:
            self.has_several_devices = self.has_several_devices or where.name != self.device.name
            check(lib.tenon_graph_set_device(graph, encoded(where.name)))
        try:
            if attributes is None:
                check(lib.tenon_graph_apply(graph, number, None, None, inputs, count, outputs, capacity, _byref(found)))
            else:
                check(lib.tenon_graph_apply_named(graph, name, encoded_attributes(attributes), inputs, count, outputs, capacity, _byref(found)))
        finally:
            if where is not None:
                check(lib.tenon_graph_set_device(graph, None))
        self.node_count += 1
        return [TracedTensor(self, outputs[i]) for i in range(found.value)]

    def converted(self, tensor: Tensor, device: DeviceLike, dtype: Optional[DType]) -> Tensor:
        """Tensor.to() in a trace. Errors: another device."""
        where = device_of(device, self.device.context)
        if where is not None and where.name != self.device.name:
            raise TraceError(f"to(): expected the device {self.device.name} that {self.name} is traced for, got {where.name}{_user_line()}: choose it by "
                             "tenon.function(device=...), or that of a single op by its argument `device`")
        if dtype is None or dtype.code == tensor._info.dtype:
            return tensor
        return self.apply(0, b"Cast", (tensor,), (("to", dtype.short),), None)[0]

    def identity(self, tensor: Tensor) -> TracedTensor:
        """Another value of the graph with the same elements."""
        return self.lift(self.apply(0, b"Reshape", (tensor,), (("shape", tensor.shape),), None)[0])

    def held_constant(self, tensor: Tensor) -> TracedTensor:
        """The same elements, through which no gradient passes."""
        made = self.identity(tensor)
        self._constants.append(made._value)
        return made

    def gradients(self, loss: Tensor, tensors: List[TracedTensor]) -> List[TracedTensor]:
        """The derivatives of a scalar."""
        count = len(tensors)
        made = (ctypes.c_uint32 * max(count, 1))()
        check(lib.tenon_graph_partial_gradients(self.graph.handle, self.lift(loss)._value, (ctypes.c_uint32 * max(count, 1))(*[each._value for each in tensors]),
                                                count, (ctypes.c_uint32 * max(len(self._constants), 1))(*self._constants), len(self._constants), made))
        self.node_count += 1
        return [TracedTensor(self, made[i]) for i in range(count)]

    def add_output(self, index: int, tensor: Tensor) -> None:
        """Declares a result of the program."""
        check(lib.tenon_graph_output(self.graph.handle, f"output{index}".encode(), self.lift(tensor)._value))
