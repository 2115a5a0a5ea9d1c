# SPDX-License-Identifier: Apache-2.0
"""Modules: objects with parameters, buffers and other modules."""
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple, TypeVar

from .._context import DeviceLike
from .._dtypes import DTypeLike
from .._errors import InvalidArgumentError
from .._library import PathLike, check, encoded, handles, json_of, lib, object_of, path_of, texts
from .._tensor import Tensor, TensorLike, asarray, wrap
from .._tracing import state, suspended

M = TypeVar("M", bound="Module")


class Parameter(Tensor):
    """A tensor that training changes: an attribute of a Module that gradients are computed for. It has a copy of the elements that it is made
    of."""

    __slots__ = ()

    def __init__(self, data: TensorLike, dtype: Optional[DTypeLike] = None, device: DeviceLike = None):
        with suspended():
            super().__init__(asarray(data, dtype, device).clone())


class Module:
    """A layer or a model: derived classes make parameters and other modules in __init__, and compute in forward().

        class Network(nn.Module):
            def __init__(self):
                self.hidden = nn.Linear(4, 8)
                self.scale = nn.Parameter(tenon.ones(8))

            def forward(self, x):
                return tenon.ops.relu(self.hidden(x)) * self.scale

    Attributes that are a Parameter, a Module, or a list, tuple or dict of modules belong to the module; register_buffer() adds tensors that
    are a part of its state and not trained. A tensor that is assigned to a parameter or a buffer sets its elements, also in a traced function;
    a Parameter takes its place, so that two modules can share it.
    """

    training: bool

    def __new__(cls, *_: Any, **__: Any) -> "Module":
        module = super().__new__(cls)
        module.__dict__.update(_training=True, _frozen=False, _buffers=())
        return module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; derived classes define it."""
        raise NotImplementedError(f"{type(self).__name__}: expected a class with a function forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    # -------------------------------------------------------------- attributes

    def __getattr__(self, name: str) -> Any:
        if name == "training":
            return self.__dict__["_training"] if state.trace is None else state.trace.rely_on(self, "_training")
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training":
            raise AttributeError("training: expected train() or eval(), which set it for all modules within this one")
        before = self.__dict__.get(name)
        is_state = isinstance(before, Parameter) or name in self.__dict__["_buffers"]
        if not is_state or isinstance(value, Parameter) or before is None:
            if state.trace is not None and isinstance(value, Tensor):
                state.trace.expect_known(value, f"{type(self).__name__}.{name} = ...", "make it a buffer in __init__, by register_buffer(), to keep it "
                                                                                       "from call to call")
            self._replace(name, value)
        elif value is None:
            self._replace(name, None)
        else:
            set_elements(before, value, name)

    def _replace(self, name: str, value: Any) -> None:
        """Sets an attribute to another object. Programs that have been made with the tensors or modules of the previous one are not used again."""
        own = self.__dict__
        if name in own and own[name] is not value and (_belongs(own[name]) or _belongs(value)):
            state.count_move()
        own[name] = value

    def register_buffer(self, name: str, tensor: TensorLike) -> None:
        """Adds a tensor that is a part of the state and not trained, as an attribute of this name; another one takes the place of the previous."""
        with suspended():
            self._replace(name, asarray(tensor).clone())
        if name not in self.__dict__["_buffers"]:
            self.__dict__["_buffers"] += (name,)

    # -------------------------------------------------------------- what belongs to it

    def named_children(self) -> Iterator[Tuple[str, "Module"]]:
        """(name, module) of the modules that are attributes."""
        for name, value in self.__dict__.items():
            yield from _modules_of(name, value)

    def named_modules(self, prefix: str = "") -> Iterator[Tuple[str, "Module"]]:
        """(name, module) of this module, "", and of all within it, each once: "encoder.0"."""
        yield from self._named_modules(prefix, set())

    def _named_modules(self, prefix: str, seen: Set[int]) -> Iterator[Tuple[str, "Module"]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, child in self.named_children():
            yield from child._named_modules(f"{prefix}.{name}" if prefix else name, seen)

    def modules(self) -> Iterator["Module"]:
        """This module and all within it."""
        return (module for _, module in self.named_modules())

    def named_parameters(self, *, trainable: bool = False) -> Iterator[Tuple[str, Parameter]]:
        """(name, parameter) of this module and of all within it, each once: ("encoder.0.weight", ...).

        trainable  True leaves out those of modules that are frozen.
        """
        seen = set()
        for prefix, module in self.named_modules():
            if trainable and (state.trace.rely_on(module, "_frozen") if state.trace is not None else module.__dict__["_frozen"]):
                continue
            for name, value in module.__dict__.items():
                if isinstance(value, Parameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{prefix}.{name}" if prefix else name), value

    def parameters(self) -> Iterator[Parameter]:
        """The parameters of this module and of all within it."""
        return (parameter for _, parameter in self.named_parameters())

    def named_buffers(self) -> Iterator[Tuple[str, Tensor]]:
        """(name, tensor) of the buffers of this module and of all within it."""
        for prefix, module in self.named_modules():
            for name in module.__dict__["_buffers"]:
                value = module.__dict__[name]
                if value is not None:
                    yield (f"{prefix}.{name}" if prefix else name), value

    def _state(self) -> Dict[str, Tensor]:
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    # -------------------------------------------------------------- modes

    def train(self: M, mode: bool = True) -> M:
        """Sets `training` of this module and all within it: Dropout drops elements, BatchNorm uses and records those of the batch."""
        for module in self.modules():
            module.__dict__["_training"] = bool(mode)
        return self

    def eval(self: M) -> M:
        """train(False)"""
        return self.train(False)

    def freeze(self: M, frozen: bool = True) -> M:
        """Leaves the parameters of this module and of all within it out of gradients; freeze(False) takes that back."""
        for module in self.modules():
            module.__dict__["_frozen"] = bool(frozen)
        return self

    def to(self: M, *to: Any, device: Any = None, dtype: Any = None) -> M:
        """Moves parameters and buffers to a device, converts the floating ones to a dtype, or both, as Tensor.to()."""
        for tensor in self._state().values():
            made = tensor.to(*to, device=device, dtype=dtype)
            if made.dtype != tensor.dtype and not tensor.dtype.is_floating:
                made = made.to(tensor.dtype)
            if made is not tensor:
                _move(tensor, made)
        return self

    # -------------------------------------------------------------- state

    def state_dict(self) -> Dict[str, Tensor]:
        """Parameters and buffers by name, as they are now: training does not change what this returned."""
        with suspended():
            return {name: tensor.clone() for name, tensor in self._state().items()}

    def load_state_dict(self, values: Mapping[str, TensorLike], *, strict: bool = True) -> Dict[str, List[str]]:
        """Sets parameters and buffers by name, and returns {"missing": [names], "unexpected": [names]}.

        values  tensors or arrays, also those of PyTorch: the names and shapes are the same.
        strict  False: missing and unexpected names are no error.
        Errors  InvalidArgumentError: a name, or another shape; nothing is set then.
        """
        own = self._state()
        report = {"missing": [name for name in own if name not in values], "unexpected": [name for name in values if name not in own]}
        if strict and (report["missing"] or report["unexpected"]):
            raise InvalidArgumentError(f"load_state_dict: expected the names {sorted(own)}, got none for {report['missing']}, and {report['unexpected']} "
                                       "more; strict=False takes those that there are")
        found = {name: asarray(values[name]) for name in own if name in values}
        for name, tensor in found.items():
            if tensor.shape != own[name].shape:
                raise InvalidArgumentError(f"load_state_dict: expected {own[name].shape} for {name}, got {tensor.shape}")
        for name, tensor in found.items():
            set_elements(own[name], tensor, name)
        return report

    def save_weights(self, path: PathLike) -> None:
        """Writes parameters and buffers to a .safetensors or .npz file."""
        own = self._state()
        check(lib.tenon_tensors_save(path_of(path), texts(list(own)), handles(list(own.values())), len(own)))

    def load_weights(self, path: PathLike, *, strict: bool = True) -> Dict[str, List[str]]:
        """load_state_dict() of a .safetensors or .npz file. Errors also: a file that cannot be read."""
        return self.load_state_dict(load_tensors(path), strict=strict)

    # -------------------------------------------------------------- what it is

    def extra_repr(self) -> str:
        """What repr() shows in the brackets of a module without others within it."""
        return ""

    def __repr__(self) -> str:
        children = list(self.named_children())
        if not children:
            return f"{type(self).__name__}({self.extra_repr()})"
        lines = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in children]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def _modules_of(name: str, value: Any) -> Iterator[Tuple[str, Module]]:
    if isinstance(value, Module):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _modules_of(f"{name}.{i}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _modules_of(f"{name}.{key}", each)


def _belongs(value: Any) -> bool:
    """Whether an attribute is a tensor, or has modules."""
    return isinstance(value, Tensor) or any(True for _ in _modules_of("", value))


def set_elements(tensor: Tensor, value: TensorLike, name: str) -> None:
    """Sets the elements of a parameter or a buffer; in a trace, after each run. Errors: another shape."""
    made = asarray(value)
    if made.shape != tensor.shape:
        raise InvalidArgumentError(f"{name}: expected the shape {tensor.shape} that it has, got {made.shape}: give a Parameter to replace it")
    if state.trace is not None:
        state.trace.assign(tensor, made if made.dtype == tensor.dtype else made.to(tensor.dtype))
    else:
        tensor.copy_(made)


def _move(tensor: Tensor, made: Tensor) -> None:
    """Gives the object the memory of another tensor; arrays and tensors that shared its own keep that."""
    lib.tenon_retain(made.handle)
    before, tensor._handle = tensor.handle, made.handle
    tensor._known, tensor._device = None, made._device
    lib.tenon_release(before)
    state.count_move()


def load_tensors(path: PathLike) -> Dict[str, Tensor]:
    """The tensors of a .safetensors or .npz file, by name."""
    parameters = object_of(lib.tenon_parameters_load, path_of(path))
    try:
        return {str(each["name"]): wrap(object_of(lib.tenon_parameters_get, parameters, encoded(each["name"])), None)
                for each in json_of(lib.tenon_parameters_describe, parameters)}
    finally:
        lib.tenon_release(parameters)


