# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Losses, for the argument `loss` of Model.compile. None stands for the default."""
from typing import Any, Optional, Sequence

from ._definition import Definition

__all__ = [
    "SparseCategoricalCrossentropy", "CategoricalCrossentropy", "BinaryCrossentropy", "BCE", "KlDivergence", "KLD", "NLL",
    "NegativeLogLikelihood", "MSE", "MeanSquaredError", "HalfMSE", "Euclidean", "MAE", "MeanAbsoluteError", "Huber", "NegMeanProd",
    "CTC",
]


def SparseCategoricalCrossentropy(*, from_logits: Optional[bool] = None, label_smoothing: Optional[float] = None, class_weights:
        Optional[Sequence[Any]] = None, ignore_index: Optional[int] = None) -> Definition:
    """sparse_categorical_crossentropy

    from_logits      true or false; default false
    label_smoothing  a number in [0, 1); default 0
    class_weights    a list of numbers, one for each class; default null
    ignore_index     an integer; default null
    """
    return Definition("loss", "sparse_categorical_crossentropy", {"from_logits": from_logits, "label_smoothing": label_smoothing,
        "class_weights": class_weights, "ignore_index": ignore_index})


def CategoricalCrossentropy(*, from_logits: Optional[bool] = None, label_smoothing: Optional[float] = None, class_weights:
        Optional[Sequence[Any]] = None) -> Definition:
    """categorical_crossentropy

    from_logits      true or false; default false
    label_smoothing  a number in [0, 1); default 0
    class_weights    a list of numbers, one for each class; default null
    """
    return Definition("loss", "categorical_crossentropy", {"from_logits": from_logits, "label_smoothing": label_smoothing, "class_weights":
        class_weights})


def BinaryCrossentropy(*, from_logits: Optional[bool] = None, label_smoothing: Optional[float] = None, positive_weight: Optional[float] =
        None) -> Definition:
    """binary_crossentropy

    from_logits      true or false; default false
    label_smoothing  a number in [0, 1); default 0
    positive_weight  a number above 0; default 1
    """
    return Definition("loss", "binary_crossentropy", {"from_logits": from_logits, "label_smoothing": label_smoothing, "positive_weight":
        positive_weight})


def BCE(*, from_logits: Optional[bool] = None, label_smoothing: Optional[float] = None, positive_weight: Optional[float] =
        None) -> Definition:
    """bce

    from_logits      true or false; default false
    label_smoothing  a number in [0, 1); default 0
    positive_weight  a number above 0; default 1
    """
    return Definition("loss", "bce", {"from_logits": from_logits, "label_smoothing": label_smoothing, "positive_weight": positive_weight})


def KlDivergence(*, from_logits: Optional[bool] = None, label_smoothing: Optional[float] = None) -> Definition:
    """kl_divergence

    from_logits      true or false; default false
    label_smoothing  a number in [0, 1); default 0
    """
    return Definition("loss", "kl_divergence", {"from_logits": from_logits, "label_smoothing": label_smoothing})


def KLD(*, from_logits: Optional[bool] = None, label_smoothing: Optional[float] = None) -> Definition:
    """kld

    from_logits      true or false; default false
    label_smoothing  a number in [0, 1); default 0
    """
    return Definition("loss", "kld", {"from_logits": from_logits, "label_smoothing": label_smoothing})


def NLL(*, ignore_index: Optional[int] = None) -> Definition:
    """nll

    ignore_index  an integer; default null
    """
    return Definition("loss", "nll", {"ignore_index": ignore_index})


def NegativeLogLikelihood(*, ignore_index: Optional[int] = None) -> Definition:
    """negative_log_likelihood

    ignore_index  an integer; default null
    """
    return Definition("loss", "negative_log_likelihood", {"ignore_index": ignore_index})


def MSE() -> Definition:
    """mse"""
    return Definition("loss", "mse", {})


def MeanSquaredError() -> Definition:
    """mean_squared_error"""
    return Definition("loss", "mean_squared_error", {})


def HalfMSE() -> Definition:
    """half_mse"""
    return Definition("loss", "half_mse", {})


def Euclidean() -> Definition:
    """euclidean"""
    return Definition("loss", "euclidean", {})


def MAE() -> Definition:
    """mae"""
    return Definition("loss", "mae", {})


def MeanAbsoluteError() -> Definition:
    """mean_absolute_error"""
    return Definition("loss", "mean_absolute_error", {})


def Huber(*, delta: Optional[float] = None) -> Definition:
    """huber

    delta  a number above 0; default 1
    """
    return Definition("loss", "huber", {"delta": delta})


def NegMeanProd() -> Definition:
    """neg_mean_prod"""
    return Definition("loss", "neg_mean_prod", {})


def CTC(*, from_logits: Optional[bool] = None, blank: Optional[int] = None) -> Definition:
    """ctc

    from_logits  true or false; default false
    blank        an integer in [0, 1099511627776]; default 0
    """
    return Definition("loss", "ctc", {"from_logits": from_logits, "blank": blank})
