# SPDX-License-Identifier: Apache-2.0
"""Optimizers of modules, and of parameters in nested tuples, lists and dicts."""
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

from .. import ops, optimizers
from .._errors import InvalidArgumentError, UnsupportedError
from .._tensor import Tensor, TensorLike, asarray, full, zeros
from .._tracing import state as tracing
from .._tracing import suspended
from .._tree import flatten, unflatten
from ._module import Module, set_elements

Step = Callable[..., Tuple[Tensor, ...]]


class _Rule(NamedTuple):
    """How the definition of an optimizer becomes a step op."""

    step: Step
    keys: Tuple[str, ...]  # attributes of the op
    slots: Tuple[str, ...]  # tensors that are kept for each parameter
    counts: bool  # the op takes the number of the step
    adds_decay: bool  # weight_decay w is added to the gradient before the step


_RULES = {
    "sgd": _Rule(ops.sgd_step, ("momentum", "weight_decay", "nesterov"), ("velocity",), False, False),
    "adam": _Rule(ops.adam_step, ("beta1", "beta2", "epsilon"), ("m", "v"), True, True),
    "adamw": _Rule(ops.adam_step, ("beta1", "beta2", "epsilon", "weight_decay"), ("m", "v"), True, False),
    "amsgrad": _Rule(ops.amsgrad_step, ("beta1", "beta2", "epsilon"), ("m", "v", "v_max"), True, True),
    "rmsprop": _Rule(ops.rmsprop_step, ("rho", "epsilon"), ("v",), False, True),
    "adagrad": _Rule(ops.adagrad_step, ("epsilon", "weight_decay"), ("sum",), False, False),
    "adadelta": _Rule(ops.adadelta_step, ("rho", "epsilon", "weight_decay"), ("v", "delta"), False, False),
}
_CLIPS = ("clip_value", "clip_norm", "clip_global_norm")


class Optimizer:
    """An optimizer for modules, or for parameters in nested tuples, lists and dicts.

    definition     one of tenon.optimizers with a learning rate that is a number, its name, or a dict.
    learning_rate  if the definition has none.

    update() changes a module. init() and apply_gradients() are functions without a state of their own:

        state = optimizer.init(parameters)
        parameters, state = optimizer.apply_gradients(gradients, parameters, state)

    Errors  UnsupportedError: schedules (set learning_rate after each step), groups, presets, radam, nadam, and rmsprop with momentum or
            centered, which Model.compile has.
    """

    def __init__(self, definition: Union[str, Mapping[str, Any]], learning_rate: float = 0.0):
        given: Dict[str, Any] = {"name": definition} if isinstance(definition, str) else dict(definition)
        self.name = str(given.pop("name", ""))
        defaults = optimizers.DEFAULTS.get(self.name)
        if defaults is None:
            raise InvalidArgumentError(f"optimizer: expected one of {', '.join(sorted(_RULES))}, got {self.name!r}")
        unknown = [key for key in given if key not in defaults and key != "learning_rate"]
        if unknown:
            raise InvalidArgumentError(f"optimizer {self.name}: expected the keys learning_rate, {', '.join(defaults)}, got {unknown[0]!r}")
        rate = given.pop("learning_rate", learning_rate)
        self.options = {**defaults, **given}
        if self.name == "adam" and self.options.pop("amsgrad", False):
            self.name = "amsgrad"
        if isinstance(rate, Mapping):
            raise UnsupportedError("optimizer: expected a number as learning_rate, got a schedule: set optimizer.learning_rate after each step")
        if not isinstance(rate, (int, float)) or rate <= 0:
            raise InvalidArgumentError(f"optimizer {self.name}: expected a learning_rate above 0, got {rate!r}: tenon.nn.Optimizer({self.name!r}, "
                                       "learning_rate=0.001)")
        rule = _RULES.get(self.name)
        left_over = [key for key, value in self.options.items() if key not in (*_CLIPS, "weight_decay", *(rule.keys if rule else ())) and value and
                     value != "none"]
        if rule is None or left_over:
            raise UnsupportedError(f"optimizer {self.name}{' with ' + left_over[0] if left_over else ''}: expected one of {', '.join(sorted(_RULES))} "
                                   "without presets, groups and options that are not of its step op (tenon.ops); Model.compile has them")
        self._rule = rule
        self._attributes = {key: self.options[key] for key in rule.keys}
        if rule.counts:  # the steps of adam add a decay of their own, which is that of adamw
            self._attributes.setdefault("weight_decay", 0.0)
        self._slots = rule.slots if self.name != "sgd" or self.options["momentum"] else ()
        with suspended():
            self._rate = full((), float(rate), "float32")
        self._state: Dict[str, Any] = {}

    @property
    def learning_rate(self) -> float:
        """The rate of the next steps, also of a traced function that uses the optimizer."""
        return float(self._rate.item())

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._rate.fill_(value)

    @property
    def state(self) -> Dict[str, Any]:
        """{"step": steps taken, name of a parameter: {"m": ..., "v": ...}} of the module that update() changes."""
        return self._state

    def state_dict(self) -> Dict[str, Tensor]:
        """The state as tensors by name, "step" and "<parameter>/m", as they are now: to save it, and to go on with it."""
        with suspended():
            return {(f"{name}/{key}" if key else name): tensor.clone() for name, slots in self._state.items()
                    for key, tensor in (slots.items() if isinstance(slots, dict) else [("", slots)])}

    def load_state_dict(self, values: Mapping[str, TensorLike]) -> None:
        """Sets the state to what state_dict() returned. Errors: other names than of this kind of optimizer."""
        made: Dict[str, Any] = {}
        for name, value in values.items():
            parameter, _, key = name.rpartition("/")
            if name != "step" and (not parameter or key not in self._slots):
                raise InvalidArgumentError(f"load_state_dict: expected the names 'step' and '<parameter>/<{' or '.join(self._slots)}>', got {name!r}")
            with suspended():
                tensor = asarray(value).clone()
            if name == "step":
                made[name] = tensor
            else:
                made.setdefault(parameter, {})[key] = tensor
        self._state = made
        tracing.count_move()  # programs would go on with the tensors of the previous state

    # -------------------------------------------------------------- steps

    def init(self, parameters: Any) -> Dict[str, Any]:
        """The state before the first step for a tensor, or for tensors in tuples, lists and dicts: {"step": 0, "slots": [...]}."""
        leaves: List[Any] = []
        flatten(parameters, leaves)
        with suspended():
            return {"step": full((), 0, "int64"), "slots": [self._zeros(asarray(each)) for each in leaves]}

    def _zeros(self, parameter: Tensor) -> Dict[str, Tensor]:
        return {name: zeros(parameter.shape, parameter.dtype, parameter.device) for name in self._slots}

    def apply_gradients(self, gradients: Any, parameters: Any, state: Mapping[str, Any]) -> Tuple[Any, Dict[str, Any]]:
        """(parameters, state) after a step. Gradients have the structure of the parameters. Errors: another one, or other shapes."""
        given: List[Any] = []
        found: List[Any] = []
        structure = flatten(parameters, given)
        if flatten(gradients, found) != structure or len(state["slots"]) != len(given):
            raise InvalidArgumentError("apply_gradients: expected gradients, and a state of init(), for the structure of the parameters, got others")
        step, made, slots = self._stepped([asarray(each) for each in found], [asarray(each) for each in given], state["step"], state["slots"])
        return unflatten(structure, made), {"step": step, "slots": slots}

    def update(self, module: Module, gradients: Mapping[str, TensorLike]) -> None:
        """Takes a step: changes the parameters of a module that gradients are given for, as value_and_grad returns them for a module, and the
        state of the optimizer. Also within a traced function. Errors: an unknown name.
        """
        parameters: Dict[str, Tensor] = dict(module.named_parameters())
        unknown = [name for name in gradients if name not in parameters]
        if unknown or not gradients:
            raise InvalidArgumentError(f"update: expected gradients by the names {sorted(parameters)}, got {unknown[0] if unknown else 'none'}")
        if "step" not in self._state:
            with suspended():
                self._state["step"] = full((), 0, "int64")
        for name in gradients:
            if name not in self._state:
                with suspended():
                    self._state[name] = self._zeros(parameters[name])
        names = list(gradients)
        step, made, slots = self._stepped([asarray(gradients[name]) for name in names], [parameters[name] for name in names], self._state["step"],
                                          [self._state[name] for name in names])
        set_elements(self._state["step"], step, "step")
        for name, parameter, slot in zip(names, made, slots):
            set_elements(parameters[name], parameter, name)
            for key, value in slot.items():
                set_elements(self._state[name][key], value, key)

    def _stepped(self, gradients: List[Tensor], parameters: List[Tensor], step: Tensor,
                 slots: Sequence[Mapping[str, Tensor]]) -> Tuple[Tensor, List[Tensor], List[Dict[str, Tensor]]]:
        gradients = self._clipped(gradients)
        decay = self.options.get("weight_decay") or 0.0
        if decay and self._rule.adds_decay:
            gradients = [gradient + parameter * decay for gradient, parameter in zip(gradients, parameters)]
        count = step + 1
        device = None if tracing.trace is not None else parameters[0].device
        leading = (self._rate, count) if self._rule.counts else (self._rate,)
        groups = [(parameter, gradient, *[slot[name] for name in self._slots]) for parameter, gradient, slot in zip(parameters, gradients, slots)]
        results = iter(self._rule.step(*leading, *groups, device=device, **self._attributes))
        made, after = [], []
        for _ in parameters:
            made.append(next(results))
            after.append({name: next(results) for name in self._slots})
        return count, made, after

    def _clipped(self, gradients: List[Tensor]) -> List[Tensor]:
        """The gradients, within the bounds of the definition."""
        value, norm, total = (self.options.get(key) for key in _CLIPS)
        if value:
            gradients = [ops.clip(each, low=-value, high=value) for each in gradients]
        if norm:
            gradients = [each * ops.minimum(norm / (ops.reduce_l2(each) + 1e-6), 1.0) for each in gradients]
        if total and gradients:
            squares = ops.reduce_sum_square(gradients[0])
            for each in gradients[1:]:
                squares = squares + ops.reduce_sum_square(each)
            scale = ops.minimum(total / (ops.sqrt(squares) + 1e-6), 1.0)
            gradients = [each * scale for each in gradients]
        return gradients

    def __repr__(self) -> str:
        shown = {key: value for key, value in self.options.items() if value and value != "none"}
        return f"Optimizer({self.name}, learning_rate={self.learning_rate:g}{''.join(f', {key}={value}' for key, value in shown.items())})"
