# SPDX-License-Identifier: Apache-2.0
"""Losses and other functions without parameters, next to those of tenon.ops."""
from typing import Optional

from .. import ops, random
from .._errors import InvalidArgumentError
from .._tensor import Tensor, TensorLike, asarray

__all__ = ["cross_entropy", "mse_loss", "l1_loss", "binary_cross_entropy_with_logits", "linear", "dropout"]


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise InvalidArgumentError(f"reduction: expected 'mean', 'sum' or 'none', got {reduction!r}")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def cross_entropy(scores: TensorLike, labels: TensorLike, weight: Optional[TensorLike] = None, *, ignore_index: Optional[int] = None,
                  reduction: str = "mean") -> Tensor:
    """-log softmax(scores)[label] for scores (n, classes, ...) and integer labels (n, ...).

    weight        one for each class; the mean divides by the sum of the weights of the labels.
    ignore_index  a label that has no loss.
    Errors  InvalidArgumentError; a label that is no class is an error of the run.
    """
    numbers = asarray(labels)
    if numbers.dtype not in ("int32", "int64"):
        if not numbers.dtype.is_integer:
            raise InvalidArgumentError(f"cross_entropy: expected integer labels, got {numbers.dtype}{numbers.shape}")
        numbers = numbers.to("int64")
    return ops.softmax_cross_entropy(scores, numbers, weight, reduction=reduction, ignore_index=ignore_index)[0]


def _difference(prediction: TensorLike, target: TensorLike, name: str) -> Tensor:
    a, b = asarray(prediction), asarray(target)
    if a.shape != b.shape:
        raise InvalidArgumentError(f"{name}: expected a target of the shape {a.shape} of the prediction, got {b.shape}")
    return a - b


def mse_loss(prediction: TensorLike, target: TensorLike, *, reduction: str = "mean") -> Tensor:
    """(prediction - target)^2"""
    difference = _difference(prediction, target, "mse_loss")
    return _reduced(difference * difference, reduction)


def l1_loss(prediction: TensorLike, target: TensorLike, *, reduction: str = "mean") -> Tensor:
    """|prediction - target|"""
    return _reduced(abs(_difference(prediction, target, "l1_loss")), reduction)


def binary_cross_entropy_with_logits(scores: TensorLike, target: TensorLike, *, reduction: str = "mean") -> Tensor:
    """-(target log s + (1 - target) log(1 - s)) with s = sigmoid(scores), without overflow."""
    x, y = asarray(scores), asarray(target)
    if x.shape != y.shape:
        raise InvalidArgumentError(f"binary_cross_entropy_with_logits: expected a target of the shape {x.shape} of the scores, got {y.shape}")
    return _reduced(ops.softplus(x) - x * y.to(x.dtype), reduction)


def linear(x: TensorLike, weight: TensorLike, bias: Optional[TensorLike] = None) -> Tensor:
    """x weight' + bias, for x (..., in) and weight (out, in)."""
    given, kernel = asarray(x), asarray(weight)
    if given.ndim == 0 or given.shape[-1] != kernel.shape[1]:
        raise InvalidArgumentError(f"linear: expected x (..., {kernel.shape[1]}) for a weight {kernel.shape}, got {given.shape}")
    rows = given if given.ndim == 2 else given.reshape(-1, kernel.shape[1])
    y = ops.gemm(rows, kernel, bias, trans_b=True)
    return y if given.ndim == 2 else y.reshape(given.shape[:-1] + (kernel.shape[0],))


def dropout(x: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """In training, x with elements set to 0 by the probability p and the others divided by 1 - p; else x."""
    if not 0 <= p < 1:
        raise InvalidArgumentError(f"dropout: expected a probability in [0, 1), got {p}")
    return random.dropout(x, p) if training and p > 0 else asarray(x)
