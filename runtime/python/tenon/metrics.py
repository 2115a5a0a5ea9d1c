# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Metrics, for the argument `metrics` of Model.compile. None stands for the default."""
from typing import Optional

from ._definition import Definition

__all__ = [
    "Accuracy", "Acc", "SparseCategoricalAccuracy", "CategoricalAccuracy", "BinaryAccuracy", "TopK", "TopKCategoricalAccuracy",
    "Perplexity", "MSE", "MeanSquaredError", "MAE", "MeanAbsoluteError",
]


def Accuracy() -> Definition:
    """accuracy"""
    return Definition("metric", "accuracy", {})


def Acc() -> Definition:
    """acc"""
    return Definition("metric", "acc", {})


def SparseCategoricalAccuracy() -> Definition:
    """sparse_categorical_accuracy"""
    return Definition("metric", "sparse_categorical_accuracy", {})


def CategoricalAccuracy() -> Definition:
    """categorical_accuracy"""
    return Definition("metric", "categorical_accuracy", {})


def BinaryAccuracy() -> Definition:
    """binary_accuracy"""
    return Definition("metric", "binary_accuracy", {})


def TopK(*, k: Optional[int] = None) -> Definition:
    """top_k

    k  an integer in [1, 1099511627776]; default 5
    """
    return Definition("metric", "top_k", {"k": k})


def TopKCategoricalAccuracy(*, k: Optional[int] = None) -> Definition:
    """top_k_categorical_accuracy

    k  an integer in [1, 1099511627776]; default 5
    """
    return Definition("metric", "top_k_categorical_accuracy", {"k": k})


def Perplexity() -> Definition:
    """perplexity"""
    return Definition("metric", "perplexity", {})


def MSE() -> Definition:
    """mse"""
    return Definition("metric", "mse", {})


def MeanSquaredError() -> Definition:
    """mean_squared_error"""
    return Definition("metric", "mean_squared_error", {})


def MAE() -> Definition:
    """mae"""
    return Definition("metric", "mae", {})


def MeanAbsoluteError() -> Definition:
    """mean_absolute_error"""
    return Definition("metric", "mean_absolute_error", {})
