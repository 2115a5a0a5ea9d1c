# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions: tenon.grad, tenon.value_and_grad."""
import functools
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

from ._context import DeviceLike
from ._errors import InvalidArgumentError
from ._function import Function, is_array
from ._tensor import Tensor, asarray
from ._traced import GraphTrace, TracedTensor
from ._tracing import state
from ._tree import flatten, unflatten

Argnums = Union[int, Sequence[int]]


def _floats_as_tensors(value: Any) -> Any:
    """An argument that is differentiated by: its numbers become tensors."""
    leaves: List[Any] = []
    structure = flatten(value, leaves)
    return unflatten(structure, [asarray(each) if isinstance(each, float) or is_array(each) else each for each in leaves])


class _Differentiated:
    """One argument of a traced function that it is differentiated by."""

    def __init__(self, trace: GraphTrace, name: str, place: int, argument: Any):
        self.trace = trace
        self.module: Dict[str, Tensor] = {}
        self.rebound: List[Tuple[Tensor, TracedTensor, TracedTensor]] = []  # parameter, its value before, the leaf in its place
        if hasattr(argument, "named_parameters"):
            parameters: Dict[str, Tensor] = {key: value for key, value in argument.named_parameters(trainable=True)}
            if not parameters:
                raise InvalidArgumentError(f"{name}: expected a module with parameters that are not frozen as argument {place}, got {argument!r}")
            for tensor in parameters.values():
                before = trace.lift(tensor)
                leaf = self._as_leaf(before)
                self.rebound.append((tensor, before, leaf))
                trace.rebind(tensor, leaf)
            self.argument, self.values = argument, [leaf for _, _, leaf in self.rebound]
            self.structure: Any = (dict, tuple((key, "leaf") for key in parameters))
            return
        leaves: List[Any] = []
        self.structure = flatten(argument, leaves)
        for each in leaves:
            if not isinstance(each, Tensor) or not each.dtype.is_floating:
                got = f"a tensor of {each.dtype}" if isinstance(each, Tensor) else repr(each) if isinstance(each, (int, str)) else type(each).__name__
                raise InvalidArgumentError(f"{name}: expected floating tensors, numbers or a module as argument {place}, by which it is differentiated, got "
                                           f"{got}: choose others by argnums")
        self.values = [self._as_leaf(trace.lift(each)) for each in leaves]
        self.argument = unflatten(self.structure, list(self.values))

    def _as_leaf(self, value: TracedTensor) -> TracedTensor:
        """The value, or an identity of it, on which nothing depends that was computed before, so that only the function itself is differentiated."""
        return self.trace.identity(value) if self.trace.node_count else value

    def unbind(self) -> None:
        """Gives parameters the values that they had before, unless the function has set them."""
        for tensor, before, leaf in self.rebound:
            if self.trace.lift(tensor) is leaf:
                self.trace.rebind(tensor, before)


def _derivative(f: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str) -> Callable[..., Any]:
    """(value, gradients) of f within a trace."""
    places = [argnums] if isinstance(argnums, int) else list(argnums)

    def run(*args: Any, **kwargs: Any) -> Any:
        trace = state.trace
        assert trace is not None
        given = list(args)
        chosen = []
        for place in places:
            if not -len(given) <= place < len(given):
                raise InvalidArgumentError(f"{name}: expected argnums among the {len(given)} positional arguments, got {place}")
            chosen.append(_Differentiated(trace, name, place, given[place]))
            given[place] = chosen[-1].argument
        result = f(*given, **kwargs)
        value = result
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise InvalidArgumentError(f"{name}: expected (value, others) of a function with has_aux=True, got {type(result).__name__}")
            value = result[0]
        if not isinstance(value, Tensor) or not value.dtype.is_floating or value.ndim != 0:
            got = f"{value.dtype}{value.shape}" if isinstance(value, Tensor) else type(value).__name__
            remedy = ": take its sum() or mean()" if isinstance(value, Tensor) and value.dtype.is_floating else ""
            raise InvalidArgumentError(f"{name}: expected a function that returns a floating scalar, got {got}{remedy}")
        gradients = iter(trace.gradients(value, [each for one in chosen for each in one.values]))
        made = [unflatten(one.structure, [next(gradients) for _ in one.values]) for one in chosen]
        for one in chosen:
            one.unbind()
        return result, made[0] if isinstance(argnums, int) else tuple(made)

    return run


def _traced(f: Callable[..., Any], argnums: Argnums, has_aux: bool, device: DeviceLike) -> Function[Any]:
    """The function of (value, gradients). It is kept with f, so that tenon.grad(f)(x) in a loop traces f once."""
    key = (id(f), argnums, has_aux, device)  # a function that wraps f may have its attributes
    kept: Dict[Any, Function[Any]] = getattr(f, "__dict__", {}).get("_tenon_derivatives", {})
    if key not in kept:
        name = getattr(f, "__name__", type(f).__name__)
        made = Function(functools.wraps(f, updated=())(_derivative(f, argnums, has_aux, f"gradient of {name}")), device)
        if not hasattr(f, "__dict__") or isinstance(f, type) or hasattr(f, "__self__"):
            return made
        kept[key] = made
        f.__dict__["_tenon_derivatives"] = kept
    return kept[key]


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, device: DeviceLike = None) -> Callable[..., Tuple[Any, Any]]:
    """A function that returns (value of f, its gradient): tenon.value_and_grad(loss)(parameters, x, y).

    f is traced into a program as by tenon.function, and is subject to the same rules. Within a traced function it becomes a part of its
    program.

    f        returns a floating scalar; with has_aux, a tuple of it and of other results, which are passed on.
    argnums  the argument, or arguments, by which f is differentiated: tensors or numbers, also nested in tuples, lists and dicts, whose
             structure the gradient has; or a tenon.nn.Module: the gradient is then a dict of its trainable parameters by name.

    Errors  UnsupportedError: a path through an op without a gradient, by name; InvalidArgumentError: integers in an argument that is
            differentiated by, a result that is no floating scalar; TraceError.
    """
    traced = _traced(f, argnums if isinstance(argnums, int) else tuple(argnums), has_aux, device)
    places = [argnums] if isinstance(argnums, int) else list(argnums)

    @functools.wraps(f, updated=())
    def run(*args: Any, **kwargs: Any) -> Tuple[Any, Any]:
        given = list(args)
        for place in places:
            if -len(given) <= place < len(given):
                given[place] = _floats_as_tensors(given[place])
        return traced(*given, **kwargs)  # type: ignore[no-any-return]

    return run


def grad(f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, device: DeviceLike = None) -> Callable[..., Any]:
    """A function that returns the gradient of f, or (gradient, other results) with has_aux; as value_and_grad.

        tenon.grad(lambda x: (x * x).sum())(tenon.Tensor([1.0, 2.0]))   # 2, 4
    """
    both = value_and_grad(f, argnums, has_aux=has_aux, device=device)

    @functools.wraps(f, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return run


def stop_gradient(x: Tensor) -> Tensor:
    """The same elements, which tenon.grad takes as constants: no gradient passes through them. Outside of a trace it is x itself."""
    return x if state.trace is None else state.trace.held_constant(x)
