# SPDX-License-Identifier: Apache-2.0
"""Layers with parameters for models that are written in Python, in PyTorch's words, and optimizers for them.

    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = nn.Optimizer(tenon.optimizers.Adam(learning_rate=1e-3))

    def loss(model, x, y):
        return nn.functional.cross_entropy(model(x), y)

    @tenon.function
    def step(x, y):
        value, gradients = tenon.value_and_grad(loss)(model, x, y)
        optimizer.update(model, gradients)
        return value
"""
from . import functional
from ._layers import (GELU, ELU, AvgPool2d, BatchNorm, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Dropout, Embedding, Flatten, Identity, LayerNorm,
                      LeakyReLU, Linear, MaxPool2d, Mish, MultiheadAttention, ReLU, RMSNorm, Sequential, Sigmoid, SiLU, Softmax, Softplus, Tanh)
from ._module import Module, Parameter
from ._optimizer import Optimizer

__all__ = [
    "Module", "Parameter", "Sequential", "Identity", "Flatten", "Linear", "Conv1d", "Conv2d", "MaxPool2d", "AvgPool2d", "BatchNorm1d", "BatchNorm2d",
    "LayerNorm", "RMSNorm", "Embedding", "Dropout", "MultiheadAttention", "ReLU", "LeakyReLU", "ELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh",
    "Softplus", "Softmax", "Optimizer", "functional",
]
