# SPDX-License-Identifier: Apache-2.0
"""Layers, with the names, shapes and initial values of PyTorch's."""
import math
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple, Union

from .. import ops, random
from .._errors import InvalidArgumentError
from .._tensor import Tensor, full, ones, zeros
from . import functional
from ._module import Module, Parameter

Sizes = Union[int, Sequence[int]]


def _sizes(value: Sizes, count: int, name: str) -> Tuple[int, ...]:
    made = (value,) * count if isinstance(value, int) else tuple(value)
    if len(made) != count:
        raise InvalidArgumentError(f"{name}: expected a number or {count} numbers, got {value!r}")
    return made


def _uniform(shape: Tuple[int, ...], fan_in: int) -> Parameter:
    """PyTorch's initial values of weights and biases: uniform in +-1 / sqrt(fan_in)."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
    return Parameter(random.uniform(shape, -bound, bound))


class Sequential(Module):
    """Modules and functions, one after the other: Sequential(Linear(4, 8), ReLU(), tenon.ops.softmax)."""

    def __init__(self, *layers: Callable[..., Any]):
        for i, layer in enumerate(layers):
            if not callable(layer):
                raise InvalidArgumentError(f"Sequential: expected modules and functions, got {type(layer).__name__}")
            setattr(self, str(i), layer)
        self.count = len(layers)

    def forward(self, x: Any) -> Any:
        """The result of the last layer."""
        for layer in self:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return (self.__dict__[str(i)] for i in range(self.count))

    def __getitem__(self, index: Any) -> Any:
        found = list(self)[index]
        return Sequential(*found) if isinstance(index, slice) else found


class Identity(Module):
    """y = x"""

    def forward(self, x: Tensor) -> Tensor:
        """x"""
        return x


class Flatten(Module):
    """(n, a, b, ...) becomes (n, a b ...)."""

    def forward(self, x: Tensor) -> Tensor:
        """x in two dimensions."""
        return x.reshape(x.shape[0], -1)


class Linear(Module):
    """y = x weight' + bias, weight (out, in)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        self.weight = _uniform((out_features, in_features), in_features)
        self.bias = _uniform((out_features,), in_features) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(..., out) for x (..., in)."""
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}" + ("" if self.bias is not None else ", bias=False")


class _Conv(Module):
    """Convolutions over `dimensions` dimensions."""

    dimensions = 0

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1,
                 bias: bool = True):
        count = self.dimensions
        if in_channels % groups or out_channels % groups:
            raise InvalidArgumentError(f"{type(self).__name__}: expected channels that {groups} groups divide, got {in_channels} and {out_channels}")
        kernel = _sizes(kernel_size, count, "kernel_size")
        self.stride, self.padding = _sizes(stride, count, "stride"), _sizes(padding, count, "padding")
        self.dilation, self.groups = _sizes(dilation, count, "dilation"), groups
        fan_in = in_channels // groups * math.prod(kernel)
        self.weight = _uniform((out_channels, in_channels // groups, *kernel), fan_in)
        self.bias = _uniform((out_channels,), fan_in) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(n, out, ...) for x (n, in, ...)."""
        return ops.conv(x, self.weight, self.bias, groups=self.groups, strides=self.stride, dilations=self.dilation, pads_before=self.padding,
                        pads_after=self.padding)

    def extra_repr(self) -> str:
        """The sizes."""
        shape = self.weight.shape
        return f"{shape[1] * self.groups}, {shape[0]}, kernel_size={shape[2:]}, stride={self.stride}, padding={self.padding}"


class Conv1d(_Conv):
    """Cross-correlation of x (n, in, length) with weight (out, in / groups, kernel)."""

    dimensions = 1


class Conv2d(_Conv):
    """Cross-correlation of x (n, in, height, width) with weight (out, in / groups, kernel, kernel)."""

    dimensions = 2


class _Pool2d(Module):
    def __init__(self, kernel_size: Sizes, stride: Optional[Sizes] = None, padding: Sizes = 0):
        self.kernel = _sizes(kernel_size, 2, "kernel_size")
        self.stride = self.kernel if stride is None else _sizes(stride, 2, "stride")
        self.padding = _sizes(padding, 2, "padding")

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.kernel}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(_Pool2d):
    """The largest element of each window."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, ...) for x (n, channels, height, width)."""
        return ops.max_pool(x, kernel=self.kernel, strides=self.stride, pads_before=self.padding, pads_after=self.padding)[0]


class AvgPool2d(_Pool2d):
    """The mean of each window, padding included."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, ...) for x (n, channels, height, width)."""
        return ops.average_pool(x, kernel=self.kernel, strides=self.stride, pads_before=self.padding, pads_after=self.padding, count_include_pad=True)


class BatchNorm(Module):
    """(x - mean) / sqrt(var + eps) weight + bias for each channel, axis 1: in training with mean and variance of the batch, which move
    running_mean and running_var by the share `momentum`; else with these."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1):
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = Parameter(ones(num_features)), Parameter(zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))
        self.register_buffer("num_batches_tracked", full((), 0, "int64"))

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """x, normalised."""
        if not self.training:
            return ops.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, axis=1, epsilon=self.eps)
        y, mean, var, _, _ = ops.batch_norm_train(x, self.weight, self.bias, self.running_mean, self.running_var, axis=1, epsilon=self.eps,
                                                  momentum=self.momentum)
        self.running_mean, self.running_var = mean, var
        self.num_batches_tracked = self.num_batches_tracked + 1
        return y

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.size}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(BatchNorm):
    """BatchNorm of x (n, channels) or (n, channels, length)."""


class BatchNorm2d(BatchNorm):
    """BatchNorm of x (n, channels, height, width)."""


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) weight + bias over the last dimensions, which have the shape `normalized_shape`."""

    def __init__(self, normalized_shape: Sizes, eps: float = 1e-5):
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight, self.bias = Parameter(ones(shape)), Parameter(zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        """x, normalised."""
        return ops.layer_norm(x, self.weight, self.bias, axis=-self.weight.ndim, epsilon=self.eps)[0]

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.shape}, eps={self.eps}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) weight over the last dimensions, which have the shape `normalized_shape`."""

    def __init__(self, normalized_shape: Sizes, eps: float = 1e-6):
        self.eps = eps
        self.weight = Parameter(ones((normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)))

    def forward(self, x: Tensor) -> Tensor:
        """x, normalised."""
        return ops.rms_norm(x, self.weight, axis=-self.weight.ndim, epsilon=self.eps)[0]

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.shape}, eps={self.eps}"


class Embedding(Module):
    """The rows of weight (num_embeddings, embedding_dim) at integers."""

    def __init__(self, num_embeddings: int, embedding_dim: int):
        self.weight = Parameter(random.normal((num_embeddings, embedding_dim)))

    def forward(self, x: Tensor) -> Tensor:
        """(..., embedding_dim) for integers x (...)."""
        return ops.gather(self.weight, x, axis=0)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class Dropout(Module):
    """In training, sets elements to 0 by the probability p, and divides the others by 1 - p."""

    def __init__(self, p: float = 0.5):
        if not 0 <= p < 1:
            raise InvalidArgumentError(f"Dropout: expected a probability in [0, 1), got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x, or what is left of it."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class MultiheadAttention(Module):
    """out_proj(softmax(q k' / sqrt(d)) v) for each head of size d = embed_dim / num_heads, of projections of the arguments (n, length, embed_dim).

    In PyTorch's words it has batch_first=True, and it returns the output alone, without the weights of the attention.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True):
        if embed_dim % num_heads:
            raise InvalidArgumentError(f"MultiheadAttention: expected an embed_dim that num_heads divides, got {embed_dim} and {num_heads}")
        self.heads = num_heads
        bound = math.sqrt(6 / (4 * embed_dim))  # Xavier's, of the three projections together
        self.in_proj_weight = Parameter(random.uniform((3 * embed_dim, embed_dim), -bound, bound))
        self.in_proj_bias = Parameter(zeros(3 * embed_dim)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        if self.out_proj.bias is not None:
            self.out_proj.bias.fill_(0)

    def forward(self, query: Tensor, key: Optional[Tensor] = None, value: Optional[Tensor] = None, *, causal: bool = False,
                mask: Optional[Tensor] = None) -> Tensor:
        """(n, length, embed_dim) for a query of this shape; key and value are the query, and the key, if they are not given.

        mask    added to the scores (n, heads, length, keys), broadcast.
        causal  True: element i attends to elements up to i.
        """
        key = query if key is None else key
        value = key if value is None else value
        size = query.shape[-1]
        parts = []
        for i, x in enumerate((query, key, value)):
            rows = slice(i * size, (i + 1) * size)
            projected = functional.linear(x, self.in_proj_weight[rows], None if self.in_proj_bias is None else self.in_proj_bias[rows])
            parts.append(projected.reshape(x.shape[0], x.shape[1], self.heads, size // self.heads).permute(0, 2, 1, 3))
        y = ops.attention(parts[0], parts[1], parts[2], mask, scale=1 / math.sqrt(size // self.heads), causal=causal)[0]
        return self.out_proj(y.permute(0, 2, 1, 3).reshape(query.shape))  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in_proj_weight.shape[1]}, num_heads={self.heads}"


class _Activation(Module):
    """A function of each element."""

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        raise NotImplementedError


class ReLU(_Activation):
    """max(0, x)"""

    def forward(self, x: Tensor) -> Tensor:
        """max(0, x)"""
        return ops.relu(x)


class LeakyReLU(_Activation):
    """x where x > 0, else negative_slope x."""

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """x where x > 0, else negative_slope x."""
        return ops.leaky_relu(x, alpha=self.negative_slope)


class ELU(_Activation):
    """x where x > 0, else alpha (e^x - 1)."""

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """x where x > 0, else alpha (e^x - 1)."""
        return ops.elu(x, alpha=self.alpha)


class GELU(_Activation):
    """x Phi(x), Phi the normal distribution, or its approximation by tanh."""

    def __init__(self, approximate: str = "none"):
        if approximate not in ("none", "tanh"):
            raise InvalidArgumentError(f"GELU: expected approximate 'none' or 'tanh', got {approximate!r}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """x Phi(x)"""
        return ops.gelu(x, approximate_tanh=self.approximate == "tanh")


class SiLU(_Activation):
    """x sigmoid(x)"""

    def forward(self, x: Tensor) -> Tensor:
        """x sigmoid(x)"""
        return ops.silu(x)


class Mish(_Activation):
    """x tanh(softplus(x))"""

    def forward(self, x: Tensor) -> Tensor:
        """x tanh(softplus(x))"""
        return ops.mish(x)


class Sigmoid(_Activation):
    """1 / (1 + e^-x)"""

    def forward(self, x: Tensor) -> Tensor:
        """1 / (1 + e^-x)"""
        return ops.sigmoid(x)


class Tanh(_Activation):
    """tanh x"""

    def forward(self, x: Tensor) -> Tensor:
        """tanh x"""
        return ops.tanh(x)


class Softplus(_Activation):
    """log(1 + e^x)"""

    def forward(self, x: Tensor) -> Tensor:
        """log(1 + e^x)"""
        return ops.softplus(x)


class Softmax(_Activation):
    """e^x / sum e^x along an axis."""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        """e^x / sum e^x"""
        return ops.softmax(x, axis=self.dim)
