# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Schedules of the learning rate, for the key `learning_rate` of an optimizer. None stands for the default."""
from typing import Any, Optional

from ._definition import Definition

__all__ = [
    "Constant", "Step", "Exponential", "Cosine", "Inv", "OneCycle", "Cyclic", "OnPlateau",
]


def Constant(*, initial: Optional[float] = None, per: Any = None, warmup: Optional[int] = None, warmup_from: Optional[float] =
        None) -> Definition:
    """constant

    initial      a number of at least 0; default 0.01
    per          step, epoch; default step
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    """
    return Definition("schedule", "constant", {"initial": initial, "per": per, "warmup": warmup, "warmup_from": warmup_from})


def Step(*, initial: Optional[float] = None, per: Any = None, factor: Optional[float] = None, every: Optional[int] = None, warmup:
        Optional[int] = None, warmup_from: Optional[float] = None) -> Definition:
    """step

    initial      a number of at least 0; default 0.01
    per          step, epoch; default step
    factor       a number above 0; default 0.1
    every        an integer in [1, 1099511627776]; default 1
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    """
    return Definition("schedule", "step", {"initial": initial, "per": per, "factor": factor, "every": every, "warmup": warmup,
        "warmup_from": warmup_from})


def Exponential(*, initial: Optional[float] = None, per: Any = None, factor: Optional[float] = None, every: Optional[int] = None, warmup:
        Optional[int] = None, warmup_from: Optional[float] = None) -> Definition:
    """exponential

    initial      a number of at least 0; default 0.01
    per          step, epoch; default step
    factor       a number above 0; default 0.1
    every        an integer in [1, 1099511627776]; default 1
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    """
    return Definition("schedule", "exponential", {"initial": initial, "per": per, "factor": factor, "every": every, "warmup": warmup,
        "warmup_from": warmup_from})


def Cosine(*, initial: Optional[float] = None, per: Any = None, length: Optional[int] = None, minimum: Optional[float] = None, warmup:
        Optional[int] = None, warmup_from: Optional[float] = None) -> Definition:
    """cosine

    initial      a number of at least 0; default 0.01
    per          step, epoch; default step
    length       an integer in [0, 1099511627776]; default 0
    minimum      a number of at least 0; default 0
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    """
    return Definition("schedule", "cosine", {"initial": initial, "per": per, "length": length, "minimum": minimum, "warmup": warmup,
        "warmup_from": warmup_from})


def Inv(*, initial: Optional[float] = None, per: Any = None, gamma: Optional[float] = None, power: Optional[float] = None, warmup:
        Optional[int] = None, warmup_from: Optional[float] = None) -> Definition:
    """inv

    initial      a number of at least 0; default 0.01
    per          step, epoch; default step
    gamma        a number of at least 0; default 0.0001
    power        a number of at least 0; default 0.75
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    """
    return Definition("schedule", "inv", {"initial": initial, "per": per, "gamma": gamma, "power": power, "warmup": warmup, "warmup_from":
        warmup_from})


def OneCycle(*, initial: Optional[float] = None, per: Any = None, length: Optional[int] = None, rise: Optional[float] = None,
        initial_factor: Optional[float] = None, final_factor: Optional[float] = None, warmup: Optional[int] = None, warmup_from:
        Optional[float] = None) -> Definition:
    """one_cycle

    initial         a number of at least 0; default 0.01
    per             step, epoch; default step
    length          an integer in [0, 1099511627776]; default 0
    rise            a number in [0, 1]; default 0.3
    initial_factor  a number above 0; default 25
    final_factor    a number above 0; default 10000
    warmup          an integer in [0, 1099511627776]; default 0
    warmup_from     a number in [0, 1]; default 0
    """
    return Definition("schedule", "one_cycle", {"initial": initial, "per": per, "length": length, "rise": rise, "initial_factor":
        initial_factor, "final_factor": final_factor, "warmup": warmup, "warmup_from": warmup_from})


def Cyclic(maximum: Any, every: Any, *, initial: Optional[float] = None, per: Any = None, warmup: Optional[int] = None, warmup_from:
        Optional[float] = None) -> Definition:
    """cyclic

    maximum      the highest rate, a number of at least 0
    every        the length of a rise, an integer of at least 1
    initial      a number of at least 0; default 0.01
    per          step, epoch; default step
    warmup       an integer in [0, 1099511627776]; default 0
    warmup_from  a number in [0, 1]; default 0
    """
    return Definition("schedule", "cyclic", {"initial": initial, "per": per, "maximum": maximum, "every": every, "warmup": warmup,
        "warmup_from": warmup_from})


def OnPlateau(*, initial: Optional[float] = None, monitor: Optional[str] = None, mode: Any = None, min_delta: Optional[float] = None,
        factor: Optional[float] = None, patience: Optional[int] = None, cooldown: Optional[int] = None, minimum: Optional[float] =
        None) -> Definition:
    """on_plateau

    initial    a number of at least 0; default 0.01
    monitor    a text
    mode       auto, min, max; default auto
    min_delta  a number of at least 0; default 0.0001
    factor     a number in (0, 1); default 0.1
    patience   an integer in [1, 1099511627776]; default 10
    cooldown   an integer in [0, 1099511627776]; default 0
    minimum    a number of at least 0; default 0
    """
    return Definition("schedule", "on_plateau", {"initial": initial, "monitor": monitor, "mode": mode, "min_delta": min_delta, "factor":
        factor, "patience": patience, "cooldown": cooldown, "minimum": minimum})
