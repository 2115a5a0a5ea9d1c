# SPDX-License-Identifier: Apache-2.0
"""Random tensors: Philox4x32-10, which gives the same bits on every backend. Within a traced function each call of it draws anew."""
import threading
from array import array
from typing import Any, Tuple

from . import ops
from ._context import DeviceLike
from ._dtypes import DTypeLike, float32
from ._tensor import Shape, Tensor, asarray
from ._tracing import state

__all__ = ["seed", "key", "uniform", "normal", "bernoulli", "permutation", "dropout"]

class _Generator:
    """Keys, one after the other, from a seed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seed(0)

    def seed(self, number: int) -> None:
        with self.lock:
            self.number, self.drawn = number & ((1 << 64) - 1), 0

    def key(self) -> Tensor:
        with self.lock:
            self.drawn += 1
            return asarray(array("Q", [self.number, self.drawn]))


_generator = _Generator()


def seed(number: int) -> None:
    """Begins the random numbers anew, also those of initial parameters and dropout; without it they begin with seed(0)."""
    _generator.seed(number)


def key() -> Tensor:
    """The next key (seed, count of keys), uint64, for the Random functions of tenon.ops."""
    return _generator.key() if state.trace is None else state.trace.drawn_input(_generator.key)


def _drawn() -> Tuple[Tensor, int]:
    """(key, stream)"""
    return (_generator.key(), 0) if state.trace is None else state.trace.random_key(_generator.key)


def _sizes(shape: Shape) -> Tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def uniform(shape: Shape, low: float = 0.0, high: float = 1.0, dtype: DTypeLike = float32, device: DeviceLike = None) -> Tensor:
    """Numbers uniform in [low, high)."""
    drawn, stream = _drawn()
    return ops.random_uniform(drawn, shape=_sizes(shape), stream=stream, low=low, high=high, dtype=dtype, device=device)


def normal(shape: Shape, mean: float = 0.0, deviation: float = 1.0, dtype: DTypeLike = float32, device: DeviceLike = None) -> Tensor:
    """Numbers of a normal distribution with a mean and a standard deviation."""
    drawn, stream = _drawn()
    return ops.random_normal(drawn, shape=_sizes(shape), stream=stream, mean=mean, deviation=deviation, dtype=dtype, device=device)


def bernoulli(shape: Shape, probability: float = 0.5, dtype: DTypeLike = float32, device: DeviceLike = None) -> Tensor:
    """1 with a probability, else 0."""
    drawn, stream = _drawn()
    return ops.random_bernoulli(drawn, shape=_sizes(shape), stream=stream, probability=probability, dtype=dtype, device=device)


def permutation(count: int, device: DeviceLike = None) -> Tensor:
    """0, 1, ... count - 1 in random order, int64."""
    drawn, stream = _drawn()
    return ops.random_permutation(drawn, shape=(count,), stream=stream, device=device)


def dropout(x: Any, probability: float = 0.5) -> Tensor:
    """x with elements set to 0 by a probability, and the others divided by 1 - probability."""
    drawn, stream = _drawn()
    return ops.dropout(x, drawn, stream=stream, probability=probability)
