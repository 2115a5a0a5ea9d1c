# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Initial values of parameters, for keys of layers such as kernel_initializer. None stands for the default."""
from typing import Optional

from ._definition import Definition

__all__ = [
    "Zeros", "Ones", "Constant", "Uniform", "Normal", "GlorotUniform", "GlorotNormal", "HeUniform", "HeNormal", "LecunUniform",
    "LecunNormal", "FanInUniform", "TruncatedNormal", "Orthogonal", "Identity",
]


def Zeros() -> Definition:
    """zeros"""
    return Definition("initializer", "zeros", {})


def Ones() -> Definition:
    """ones"""
    return Definition("initializer", "ones", {})


def Constant(value: float) -> Definition:
    """constant

    value  a number
    """
    return Definition("initializer", "constant", {"value": value})


def Uniform(*, low: Optional[float] = None, high: Optional[float] = None) -> Definition:
    """uniform

    low   a number; default -0.05
    high  a number; default 0.05
    """
    return Definition("initializer", "uniform", {"low": low, "high": high})


def Normal(*, mean: Optional[float] = None, stddev: Optional[float] = None) -> Definition:
    """normal

    mean    a number; default 0
    stddev  a number of at least 0; default 0.05
    """
    return Definition("initializer", "normal", {"mean": mean, "stddev": stddev})


def GlorotUniform(*, gain: Optional[float] = None) -> Definition:
    """glorot_uniform

    gain  a number above 0; default 1
    """
    return Definition("initializer", "glorot_uniform", {"gain": gain})


def GlorotNormal(*, gain: Optional[float] = None, truncated: Optional[bool] = None) -> Definition:
    """glorot_normal

    gain       a number above 0; default 1
    truncated  true or false; default null
    """
    return Definition("initializer", "glorot_normal", {"gain": gain, "truncated": truncated})


def HeUniform(*, gain: Optional[float] = None) -> Definition:
    """he_uniform

    gain  a number above 0; default 1
    """
    return Definition("initializer", "he_uniform", {"gain": gain})


def HeNormal(*, gain: Optional[float] = None, truncated: Optional[bool] = None) -> Definition:
    """he_normal

    gain       a number above 0; default 1
    truncated  true or false; default null
    """
    return Definition("initializer", "he_normal", {"gain": gain, "truncated": truncated})


def LecunUniform(*, gain: Optional[float] = None) -> Definition:
    """lecun_uniform

    gain  a number above 0; default 1
    """
    return Definition("initializer", "lecun_uniform", {"gain": gain})


def LecunNormal(*, gain: Optional[float] = None, truncated: Optional[bool] = None) -> Definition:
    """lecun_normal

    gain       a number above 0; default 1
    truncated  true or false; default null
    """
    return Definition("initializer", "lecun_normal", {"gain": gain, "truncated": truncated})


def FanInUniform(*, gain: Optional[float] = None) -> Definition:
    """fan_in_uniform

    gain  a number above 0; default 1
    """
    return Definition("initializer", "fan_in_uniform", {"gain": gain})


def TruncatedNormal(*, mean: Optional[float] = None, stddev: Optional[float] = None) -> Definition:
    """truncated_normal

    mean    a number; default 0
    stddev  a number of at least 0; default 0.05
    """
    return Definition("initializer", "truncated_normal", {"mean": mean, "stddev": stddev})


def Orthogonal(*, gain: Optional[float] = None) -> Definition:
    """orthogonal

    gain  a number above 0; default 1
    """
    return Definition("initializer", "orthogonal", {"gain": gain})


def Identity(*, gain: Optional[float] = None) -> Definition:
    """identity

    gain  a number above 0; default 1
    """
    return Definition("initializer", "identity", {"gain": gain})
