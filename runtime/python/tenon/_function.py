# SPDX-License-Identifier: Apache-2.0
"""tenon.function: functions of Python as programs."""
import ctypes
import functools
import itertools
import threading
import warnings
from typing import Any, Callable, Dict, Generic, Hashable, List, Optional, Tuple, TypeVar, Union, cast, overload

from . import _api, _library
from ._context import Device, DeviceLike, default_context, device_of
from ._dtypes import BY_CODE
from ._errors import TraceError
from ._exchange import has_buffer
from ._library import check, encoded, lib, object_of, sized
from ._program import Program
from ._tensor import Tensor, asarray, wrap
from ._traced import Source, GraphTrace
from ._tracing import state
from ._tree import LEAF, flatten, unflatten

R = TypeVar("R")
_byref = ctypes.byref
_CAPACITY = 64  # programs of a function
_MANY = 8  # programs for which nothing but numbers differ, from which on there is a warning
_uses = itertools.count()
_SCALARS = (bool, int, float, complex, str, bytes, type(None))


class _Compiled:
    """A program of a function, with what it takes besides the arguments and what becomes of its results."""

    __slots__ = ("program", "sources", "assigned", "conditions", "structure", "others", "device", "output_count", "lock", "generation", "buffers", "moves",
                 "shapes", "last_use")

    def __init__(self, program: Program, sources: List[Source], assigned: List[Tensor], conditions: List[Tuple[Any, str, Any]], structure: Any,
                 others: List[Any], device: Optional[Device], output_count: int):
        self.program, self.sources, self.assigned, self.conditions = program, sources, assigned, conditions
        self.structure, self.others = structure, others  # of the result; others: its leaves that are no tensors, by place
        self.device, self.output_count = device, output_count  # device: of the results, None if there are several
        self.lock = threading.Lock()
        self.generation, self.moves = _library.generation(), state.moves()
        self.buffers: List[Tensor] = []  # what becomes of `assigned`
        self.shapes: Hashable = None  # of the tensors among the arguments
        self.last_use = next(_uses)

    def applies(self) -> bool:
        """Whether what the trace relied on is still so."""
        if self.generation != _library.generation() or self.moves != state.moves():
            return False
        for owner, attribute, value in self.conditions:
            alive = owner()
            if alive is None or alive.__dict__[attribute] != value:
                return False
        return True

    def run(self, tensors: List[Tensor]) -> Any:
        """The result of the function for the tensors among its arguments."""
        for source in self.sources:
            tensors.append(source if isinstance(source, Tensor) else source())
        count, assigned = len(tensors), self.assigned
        total = self.output_count + len(assigned)
        with self.lock:
            inputs = (ctypes.c_void_p * max(count, 1))(*[each.handle for each in tensors])
            outputs = (ctypes.c_void_p * max(total, 1))(*[None] * self.output_count, *[each.handle for each in self.buffers])
            check(lib.tenon_program_run(self.program.handle, inputs, count, outputs, total, None))
            if len(self.buffers) < len(assigned):
                self.buffers = [wrap(outputs[i], self.device) for i in range(self.output_count, total)]
            # A program reads its inputs until its end, so that it cannot write to their memory.
            for tensor, buffer in zip(assigned, self.buffers):
                check(lib.tenon_tensor_assign(tensor.handle, buffer.handle))
        if self.structure == LEAF:
            return wrap(outputs[0], self.device)
        results = iter([wrap(outputs[i], self.device) for i in range(self.output_count)])
        return unflatten(self.structure, [next(results) if other is Tensor else other for other in self.others])


def compiled_graph(trace: GraphTrace, device: Device, precision: Optional[str]) -> Program:
    """The program of a trace."""
    options = sized(_api.TenonProgramOptions, device=encoded(device.name), precision=encoded(precision))
    return Program(object_of(lib.tenon_program_create, device.context.handle, trace.graph.handle, _byref(options)))


class Function(Generic[R]):
    """A function of Python that runs as a program; tenon.function makes it."""

    def __init__(self, function: Callable[..., R], device: DeviceLike = None, precision: Optional[str] = None, freeze: bool = False):
        if not callable(function):
            raise TypeError(f"tenon.function: expected a function, got {type(function).__name__}")
        self._function, self._device, self._precision, self._freeze = function, device, precision, freeze
        self._programs: Dict[Hashable, List[_Compiled]] = {}
        self._lock = threading.RLock()
        self._shapes: Dict[Hashable, int] = {}  # how many programs have these tensors and differ in the other arguments
        functools.update_wrapper(self, function)
        self._name = getattr(function, "__name__", type(function).__name__)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<tenon.Function {self._name}>"

    @property
    def program_count(self) -> int:
        """How many programs have been made, one for each combination of shapes, dtypes, devices and other arguments."""
        return sum(map(len, self._programs.values()))

    def clear(self) -> None:
        """Gives all programs up; the next calls trace anew."""
        with self._lock:
            self._programs.clear()
            self._shapes.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if state.trace is not None:  # a part of another function's program
            return self._function(*args, **kwargs)
        compiled, tensors = self._find(args, kwargs)
        return cast(R, compiled.run(tensors))

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program for arguments like these, which is made if there is none: for its info and explain()."""
        return self._find(args, kwargs)[0].program

    # -------------------------------------------------------------- programs

    def _find(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[_Compiled, List[Tensor]]:
        leaves: List[Any] = []
        structure = flatten(args, leaves)
        if kwargs:
            structure = (structure, flatten(kwargs, leaves))
        tensors: List[Tensor] = []
        kinds: List[Any] = []
        for place, leaf in enumerate(leaves):
            if not isinstance(leaf, Tensor):
                if isinstance(leaf, _SCALARS) or not is_array(leaf):
                    # The text of a float tells -0.0 from 0.0, which are equal, and finds NaN again, which is not.
                    kinds.append((type(leaf), repr(leaf) if isinstance(leaf, (float, complex)) else leaf))
                    continue
                leaf = asarray(leaf)
            info = leaf._info
            try:
                kinds.append(info.kind)
            except AttributeError:
                info.kind = (info.dtype, *info.shape[:info.rank])
                kinds.append(info.kind)
            tensors.append(leaf)
        device = self._device_for(tensors)
        key = (structure, device, *kinds)
        try:
            found = self._programs.get(key)
        except TypeError:
            wrong = next(each for _, each in (kind for kind in kinds if isinstance(kind[0], type)) if not _is_hashable(each))
            raise TraceError(f"{self._name}: expected arguments that are tensors, numbers, texts, objects with a hash, or tuples, lists and dicts of them, "
                             f"got {type(wrong).__name__}") from None
        if found is not None:
            for compiled in found:
                if compiled.applies():
                    compiled.last_use = next(_uses)
                    return compiled, tensors
        return self._made(key, structure, bool(kwargs), leaves, kinds, device), tensors

    def _device_for(self, tensors: List[Tensor]) -> Device:
        if self._device is not None:
            return cast(Device, device_of(self._device))
        for each in tensors:
            if each._device is not None and not each._device.closed:
                return each._device
        return default_context().device()

    def _made(self, key: Hashable, structure: Any, has_names: bool, leaves: List[Any], kinds: List[Any], device: Device) -> _Compiled:
        with self._lock:
            compiled = self._traced(structure, has_names, leaves, kinds, device)
            for each in self._programs.get(key, []):
                if (each.generation, each.moves) != (_library.generation(), state.moves()):
                    self._drop(key, each)
            while self.program_count >= _CAPACITY:
                self._drop(*min(((other, each) for other, programs in self._programs.items() for each in programs), key=lambda pair: pair[1].last_use))
            self._programs[key] = [*self._programs.get(key, []), compiled]
            shapes = compiled.shapes = tuple(kind for kind in kinds if not isinstance(kind[0], type))
            self._shapes[shapes] = self._shapes.get(shapes, 0) + 1
            if self._shapes[shapes] == _MANY and any(isinstance(leaf, (int, float)) and not isinstance(leaf, bool) for leaf in leaves):
                warnings.warn(f"tenon.function: {self._name} has been traced {_MANY} times for tensors of the same shapes, since its other arguments "
                              "differ, and numbers of Python are constants of a program: give what changes with each call as tenon.Tensor(number)",
                              stacklevel=4)
            return compiled

    def _drop(self, key: Hashable, compiled: _Compiled) -> None:
        """Gives a program up. Other threads may iterate over the list that it is in."""
        left = [each for each in self._programs[key] if each is not compiled]
        if left:
            self._programs[key] = left
        else:
            del self._programs[key]
        self._shapes[compiled.shapes] -= 1
        if self._shapes[compiled.shapes] == 0:
            del self._shapes[compiled.shapes]

    def _traced(self, structure: Any, has_names: bool, leaves: List[Any], kinds: List[Any], device: Device) -> _Compiled:
        with GraphTrace(self._name, device, self._freeze) as trace:
            try:
                arguments = [leaf if isinstance(kind[0], type) else trace.add_input(BY_CODE[kind[0]], kind[1:]) for leaf, kind in zip(leaves, kinds)]
                args, kwargs = unflatten((tuple, structure if has_names else (structure, (dict, ()))), arguments)
                result = self._function(*args, **kwargs)
                results: List[Any] = []
                made_structure = flatten(result, results)
                count = 0
                for i, each in enumerate(results):
                    if not isinstance(each, Tensor) and not isinstance(each, _SCALARS) and is_array(each):
                        each = asarray(each)
                    if isinstance(each, Tensor):
                        trace.add_output(count, each)
                        count += 1
                        results[i] = Tensor
                    elif not isinstance(each, _SCALARS):
                        raise TraceError(f"{self._name}: expected a result of tensors, numbers, texts, None, and tuples, lists and dicts of them, got "
                                         f"{type(each).__name__}")
                assigned = list(trace.assigned.values())
                for i, each in enumerate(assigned):
                    trace.add_output(count + i, trace.lift(each))
                if count + len(assigned) == 0:
                    raise TraceError(f"{self._name}: expected a function that returns a tensor, got {result!r}")
                if self._device is None and all(leaf._device is None for leaf in leaves if isinstance(leaf, Tensor)):
                    device = next((each._device for each in trace.sources if isinstance(each, Tensor) and each._device is not None and
                                   not each._device.closed), device)
                program = compiled_graph(trace, device, self._precision)
                return _Compiled(program, trace.sources, assigned, trace.conditions, made_structure, results, None if trace.has_several_devices else device,
                                 count)
            finally:
                trace.close()


def is_array(value: Any) -> bool:
    """Whether a value is an array of another package."""
    return hasattr(value, "__dlpack__") or hasattr(value, "__array__") or has_buffer(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@overload
def function(f: Callable[..., R], *, device: DeviceLike = None, precision: Optional[str] = None, freeze: bool = False) -> Function[R]:
    ...


@overload
def function(f: None = None, *, device: DeviceLike = None, precision: Optional[str] = None,
             freeze: bool = False) -> Callable[[Callable[..., R]], Function[R]]:
    ...


def function(f: Optional[Callable[..., R]] = None, *, device: DeviceLike = None, precision: Optional[str] = None,
             freeze: bool = False) -> Union[Function[R], Callable[[Callable[..., R]], Function[R]]]:
    """A function whose operations on tensors run as one program: @tenon.function, or tenon.function(f).

    The function is traced once for each combination of shapes, dtypes and device of the tensors among its arguments, and of its other
    arguments, which are constants of the program. Arguments and results may be nested in tuples, lists and dicts.
    A tensor that the function uses without being given it is an input too: its elements are read at each call. So are the parameters of
    modules of tenon.nn, which the function may also set.

    device     where the program runs; None: where the first argument that is on a device is, or the first other tensor that the function
               uses, such as a parameter; else the default device.
    precision  as in tenon.yaml, "mixed_bfloat16"; None: that of the context.
    freeze     True makes constants of the tensors that the function uses without being given them, with the elements that they have when it
               is traced: a backend may rearrange them once.

    Errors  TraceError: elements of a traced tensor are needed, as by `if x.sum() > 0:`, float(x) or x.numpy(); the text has the remedy.
    """
    if f is None:
        return lambda g: Function(g, device, precision, freeze)
    return Function(f, device, precision, freeze)


