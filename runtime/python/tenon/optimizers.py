# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Optimizers, for the argument `optimizer` of Model.compile. None stands for the default."""
from typing import Any, Dict, Optional, Sequence

from ._definition import Definition

__all__ = [
    "Adam", "AdamW", "AMSGrad", "SGD", "RMSprop", "Adagrad", "Adadelta", "RAdam", "NAdam",
]

DEFAULTS: Dict[str, Dict[str, Any]] = {  # of the keys that have one
    "adam": {'preset': 'none', 'beta1': 0.9, 'beta2': 0.999, 'epsilon': 1e-08, 'amsgrad': False, 'weight_decay': 0.0, 'groups': None,
        'clip_value': None, 'clip_norm': None, 'clip_global_norm': None},
    "adamw": {'preset': 'none', 'weight_decay': 0.01, 'beta1': 0.9, 'beta2': 0.999, 'epsilon': 1e-08, 'amsgrad': False, 'groups': None,
        'clip_value': None, 'clip_norm': None, 'clip_global_norm': None},
    "amsgrad": {'preset': 'none', 'beta1': 0.9, 'beta2': 0.999, 'epsilon': 1e-08, 'weight_decay': 0.0, 'groups': None, 'clip_value': None,
        'clip_norm': None, 'clip_global_norm': None},
    "sgd": {'preset': 'none', 'momentum': 0.0, 'nesterov': False, 'weight_decay': 0.0, 'groups': None, 'clip_value': None, 'clip_norm':
        None, 'clip_global_norm': None},
    "rmsprop": {'preset': 'none', 'rho': 0.999, 'epsilon': 1e-08, 'momentum': 0.0, 'centered': False, 'weight_decay': 0.0, 'groups': None,
        'clip_value': None, 'clip_norm': None, 'clip_global_norm': None},
    "adagrad": {'preset': 'none', 'epsilon': 1e-10, 'weight_decay': 0.0, 'initial_accumulator': 0.0, 'groups': None, 'clip_value': None,
        'clip_norm': None, 'clip_global_norm': None},
    "adadelta": {'preset': 'none', 'rho': 0.9, 'epsilon': 1e-06, 'weight_decay': 0.0, 'groups': None, 'clip_value': None, 'clip_norm': None,
        'clip_global_norm': None},
    "radam": {'preset': 'none', 'beta1': 0.9, 'beta2': 0.999, 'epsilon': 1e-08, 'weight_decay': 0.0, 'groups': None, 'clip_value': None,
        'clip_norm': None, 'clip_global_norm': None},
    "nadam": {'preset': 'none', 'beta1': 0.9, 'beta2': 0.999, 'epsilon': 1e-08, 'weight_decay': 0.0, 'groups': None, 'clip_value': None,
        'clip_norm': None, 'clip_global_norm': None},
}


def Adam(*, preset: Any = None, learning_rate: Any = None, beta1: Optional[float] = None, beta2: Optional[float] = None, epsilon:
        Optional[float] = None, amsgrad: Optional[bool] = None, weight_decay: Optional[float] = None, groups: Optional[Sequence[Any]] =
        None, clip_value: Optional[float] = None, clip_norm: Optional[float] = None, clip_global_norm: Optional[float] =
        None) -> Definition:
    """adam

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    beta1             a number in [0, 1); default 0.9
    beta2             a number in [0, 1); default 0.999
    epsilon           a number above 0; default 1e-08
    amsgrad           true or false; default false
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "adam", {"preset": preset, "learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon":
        epsilon, "amsgrad": amsgrad, "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm,
        "clip_global_norm": clip_global_norm})


def AdamW(*, preset: Any = None, learning_rate: Any = None, weight_decay: Optional[float] = None, beta1: Optional[float] = None, beta2:
        Optional[float] = None, epsilon: Optional[float] = None, amsgrad: Optional[bool] = None, groups: Optional[Sequence[Any]] = None,
        clip_value: Optional[float] = None, clip_norm: Optional[float] = None, clip_global_norm: Optional[float] = None) -> Definition:
    """adamw

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    weight_decay      a number of at least 0; default 0.01
    beta1             a number in [0, 1); default 0.9
    beta2             a number in [0, 1); default 0.999
    epsilon           a number above 0; default 1e-08
    amsgrad           true or false; default false
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "adamw", {"preset": preset, "learning_rate": learning_rate, "weight_decay": weight_decay, "beta1": beta1,
        "beta2": beta2, "epsilon": epsilon, "amsgrad": amsgrad, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm,
        "clip_global_norm": clip_global_norm})


def AMSGrad(*, preset: Any = None, learning_rate: Any = None, beta1: Optional[float] = None, beta2: Optional[float] = None, epsilon:
        Optional[float] = None, weight_decay: Optional[float] = None, groups: Optional[Sequence[Any]] = None, clip_value: Optional[float] =
        None, clip_norm: Optional[float] = None, clip_global_norm: Optional[float] = None) -> Definition:
    """amsgrad

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    beta1             a number in [0, 1); default 0.9
    beta2             a number in [0, 1); default 0.999
    epsilon           a number above 0; default 1e-08
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "amsgrad", {"preset": preset, "learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon":
        epsilon, "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm, "clip_global_norm":
        clip_global_norm})


def SGD(*, preset: Any = None, learning_rate: Any = None, momentum: Optional[float] = None, nesterov: Optional[bool] = None, weight_decay:
        Optional[float] = None, groups: Optional[Sequence[Any]] = None, clip_value: Optional[float] = None, clip_norm: Optional[float] =
        None, clip_global_norm: Optional[float] = None) -> Definition:
    """sgd

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    momentum          a number in [0, 1); default 0
    nesterov          true or false; default false
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "sgd", {"preset": preset, "learning_rate": learning_rate, "momentum": momentum, "nesterov": nesterov,
        "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm, "clip_global_norm":
        clip_global_norm})


def RMSprop(*, preset: Any = None, learning_rate: Any = None, rho: Optional[float] = None, epsilon: Optional[float] = None, momentum:
        Optional[float] = None, centered: Optional[bool] = None, weight_decay: Optional[float] = None, groups: Optional[Sequence[Any]] =
        None, clip_value: Optional[float] = None, clip_norm: Optional[float] = None, clip_global_norm: Optional[float] =
        None) -> Definition:
    """rmsprop

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    rho               a number in [0, 1); default 0.999
    epsilon           a number above 0; default 1e-08
    momentum          a number in [0, 1); default 0
    centered          true or false; default false
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "rmsprop", {"preset": preset, "learning_rate": learning_rate, "rho": rho, "epsilon": epsilon, "momentum":
        momentum, "centered": centered, "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm,
        "clip_global_norm": clip_global_norm})


def Adagrad(*, preset: Any = None, learning_rate: Any = None, epsilon: Optional[float] = None, weight_decay: Optional[float] = None,
        initial_accumulator: Optional[float] = None, groups: Optional[Sequence[Any]] = None, clip_value: Optional[float] = None, clip_norm:
        Optional[float] = None, clip_global_norm: Optional[float] = None) -> Definition:
    """adagrad

    preset               none, keras, torch, gorgonia; default none
    learning_rate        a number, or a map with the key schedule
    epsilon              a number above 0; default 1e-10
    weight_decay         a number of at least 0; default 0
    initial_accumulator  a number of at least 0; default 0
    groups               a list of maps with the key 'match'; default null
    clip_value           a number above 0; default null
    clip_norm            a number above 0; default null
    clip_global_norm     a number above 0; default null
    """
    return Definition("optimizer", "adagrad", {"preset": preset, "learning_rate": learning_rate, "epsilon": epsilon, "weight_decay":
        weight_decay, "initial_accumulator": initial_accumulator, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm,
        "clip_global_norm": clip_global_norm})


def Adadelta(*, preset: Any = None, learning_rate: Any = None, rho: Optional[float] = None, epsilon: Optional[float] = None, weight_decay:
        Optional[float] = None, groups: Optional[Sequence[Any]] = None, clip_value: Optional[float] = None, clip_norm: Optional[float] =
        None, clip_global_norm: Optional[float] = None) -> Definition:
    """adadelta

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    rho               a number in [0, 1); default 0.9
    epsilon           a number above 0; default 1e-06
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "adadelta", {"preset": preset, "learning_rate": learning_rate, "rho": rho, "epsilon": epsilon,
        "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm, "clip_global_norm":
        clip_global_norm})


def RAdam(*, preset: Any = None, learning_rate: Any = None, beta1: Optional[float] = None, beta2: Optional[float] = None, epsilon:
        Optional[float] = None, weight_decay: Optional[float] = None, groups: Optional[Sequence[Any]] = None, clip_value: Optional[float] =
        None, clip_norm: Optional[float] = None, clip_global_norm: Optional[float] = None) -> Definition:
    """radam

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    beta1             a number in [0, 1); default 0.9
    beta2             a number in [0, 1); default 0.999
    epsilon           a number above 0; default 1e-08
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "radam", {"preset": preset, "learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon":
        epsilon, "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm, "clip_global_norm":
        clip_global_norm})


def NAdam(*, preset: Any = None, learning_rate: Any = None, beta1: Optional[float] = None, beta2: Optional[float] = None, epsilon:
        Optional[float] = None, weight_decay: Optional[float] = None, groups: Optional[Sequence[Any]] = None, clip_value: Optional[float] =
        None, clip_norm: Optional[float] = None, clip_global_norm: Optional[float] = None) -> Definition:
    """nadam

    preset            none, keras, torch, gorgonia; default none
    learning_rate     a number, or a map with the key schedule
    beta1             a number in [0, 1); default 0.9
    beta2             a number in [0, 1); default 0.999
    epsilon           a number above 0; default 1e-08
    weight_decay      a number of at least 0; default 0
    groups            a list of maps with the key 'match'; default null
    clip_value        a number above 0; default null
    clip_norm         a number above 0; default null
    clip_global_norm  a number above 0; default null
    """
    return Definition("optimizer", "nadam", {"preset": preset, "learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon":
        epsilon, "weight_decay": weight_decay, "groups": groups, "clip_value": clip_value, "clip_norm": clip_norm, "clip_global_norm":
        clip_global_norm})
