# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Callbacks of Model.fit: the library's, and Callback for those of Python. None stands for the default."""
from typing import Any, Optional

from ._callback import Callback, LambdaCallback
from ._definition import Definition

__all__ = [
    "Callback", "LambdaCallback", "Checkpoint", "EarlyStopping", "ReduceOnPlateau", "LearningRate", "TerminateOnNan", "CSV", "Json",
    "Tensorboard", "Curves",
]


def Checkpoint(directory: Any, *, best: Optional[bool] = None, overwrite: Optional[bool] = None, every_epochs: Optional[int] = None, keep:
        Optional[int] = None, monitor: Optional[str] = None, mode: Any = None, min_delta: Optional[float] = None) -> Definition:
    """checkpoint

    directory     a folder
    best          true or false; default false
    overwrite     true or false; default false
    every_epochs  an integer in [1, 1099511627776]; default 1
    keep          an integer in [0, 1099511627776]; default 1
    monitor       a text
    mode          auto, min, max; default auto
    min_delta     a number of at least 0; default 0
    """
    return Definition("callback", "checkpoint", {"directory": directory, "best": best, "overwrite": overwrite, "every_epochs": every_epochs,
        "keep": keep, "monitor": monitor, "mode": mode, "min_delta": min_delta})


def EarlyStopping(*, monitor: Optional[str] = None, mode: Any = None, min_delta: Optional[float] = None, patience: Optional[int] = None,
        restore_best: Optional[bool] = None) -> Definition:
    """early_stopping

    monitor       a text
    mode          auto, min, max; default auto
    min_delta     a number of at least 0; default 0
    patience      an integer in [0, 1099511627776]; default 0
    restore_best  true or false; default false
    """
    return Definition("callback", "early_stopping", {"monitor": monitor, "mode": mode, "min_delta": min_delta, "patience": patience,
        "restore_best": restore_best})


def ReduceOnPlateau(*, monitor: Optional[str] = None, mode: Any = None, min_delta: Optional[float] = None, factor: Optional[float] = None,
        patience: Optional[int] = None, cooldown: Optional[int] = None, minimum: Optional[float] = None) -> Definition:
    """reduce_on_plateau

    monitor    a text
    mode       auto, min, max; default auto
    min_delta  a number of at least 0; default 0.0001
    factor     a number in (0, 1); default 0.1
    patience   an integer in [1, 1099511627776]; default 10
    cooldown   an integer in [0, 1099511627776]; default 0
    minimum    a number of at least 0; default 0
    """
    return Definition("callback", "reduce_on_plateau", {"monitor": monitor, "mode": mode, "min_delta": min_delta, "factor": factor,
        "patience": patience, "cooldown": cooldown, "minimum": minimum})


def LearningRate(schedule: str, *, per: Any = None, factor: Optional[float] = None, every: Optional[int] = None, warmup: Optional[int] =
        None, warmup_from: Optional[float] = None, initial: Optional[float] = None) -> Definition:
    """learning_rate

    schedule     the name of a schedule
    per          step, epoch; default step
    factor       a number above 0; default 0.1
    every        an integer in [1, 1099511627776]; default 1
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    initial      a number of at least 0; default null
    """
    return Definition("callback", "learning_rate", {"schedule": schedule, "per": per, "factor": factor, "every": every, "warmup": warmup,
        "warmup_from": warmup_from, "initial": initial})


def TerminateOnNan() -> Definition:
    """terminate_on_nan"""
    return Definition("callback", "terminate_on_nan", {})


def CSV(file: Any) -> Definition:
    """csv

    file  the path of a file
    """
    return Definition("callback", "csv", {"file": file})


def Json(file: Any) -> Definition:
    """json

    file  the path of a file
    """
    return Definition("callback", "json", {"file": file})


def Tensorboard(directory: Any) -> Definition:
    """tensorboard

    directory  a folder
    """
    return Definition("callback", "tensorboard", {"directory": directory})


def Curves(file: Any, *, title: Optional[str] = None) -> Definition:
    """curves

    file   the path of a file
    title  a text
    """
    return Definition("callback", "curves", {"file": file, "title": title})
