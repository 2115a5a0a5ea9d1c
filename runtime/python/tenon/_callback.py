# SPDX-License-Identifier: Apache-2.0
"""Callbacks of a fit that are functions of Python."""
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

if TYPE_CHECKING:
    from ._model import Model

Logs = Dict[str, float]


class Callback:
    """Functions that a fit calls on its thread; derived classes define those that they need. `model` is the model that is fitted.

    An exception ends the fit, which raises it; the model keeps the state after its last step. `model.stop_training = True` ends the fit
    after the step.
    """

    model: "Model"

    def on_train_begin(self, logs: Optional[Logs] = None) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, epoch: int, logs: Optional[Logs] = None) -> None:
        """Before an epoch, counted from 0."""

    def on_train_batch_end(self, batch: int, logs: Optional[Logs] = None) -> None:
        """After a batch, counted from 0; `logs` are the means over the epoch so far, {"loss": ..., "accuracy": ...}. With a function here the
        fit waits for a GPU after each step, because the function may use the model."""

    def on_epoch_end(self, epoch: int, logs: Optional[Logs] = None) -> None:
        """After an epoch; `logs` have loss and metrics, with the prefix val_ those of the validation."""

    def on_train_end(self, logs: Optional[Logs] = None) -> None:
        """After the last epoch."""


def follows_batches(callback: Callback) -> bool:
    """Whether it has an on_train_batch_end of its own, which may use the model."""
    return getattr(callback.on_train_batch_end, "__func__", callback.on_train_batch_end) is not Callback.on_train_batch_end


class LambdaCallback(Callback):
    """A callback of given functions: LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs))."""

    def __init__(self, **functions: Callable[..., Any]):
        for name, function in functions.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise TypeError(f"LambdaCallback: expected functions named as those of Callback, got {name}")
            setattr(self, name, function)
