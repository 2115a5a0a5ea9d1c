# SPDX-License-Identifier: Apache-2.0
# Written by tools/python/generate.py from what the readers of YAML know; a test checks that it is up to date.
"""Layers, for tenon.Sequential. The keys are those of a model.yaml (docs/yaml.md), which has their meaning. None stands for the default."""
from typing import Any, Optional, Sequence

from ._definition import Definition

__all__ = [
    "Flatten", "Dense", "Dropout", "Activation", "PReLU", "GLU", "Embedding", "Reshape", "Permute", "Residual", "Branches",
    "Conv1D", "Conv2D", "DepthwiseConv2D", "Conv2DTranspose", "MaxPool1D", "MaxPool2D", "AveragePool1D", "AveragePool2D",
    "LpPool1D", "LpPool2D", "GlobalAveragePool", "GlobalMaxPool", "AdaptiveAveragePool", "AdaptiveMaxPool", "Upsample2D",
    "PadChannels", "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm", "LRN", "LSTM", "GRU", "RNN", "Attention",
    "PositionEmbedding", "SinusoidalPosition", "MeanOverTime", "VendorOp", "ONNX", "ReLU", "Sigmoid", "Tanh", "Softmax",
    "LogSoftmax", "ReLU6", "LeakyReLU", "ELU", "Softplus", "Mish", "GELU", "SiLU", "GELUTanh", "SELU", "HardSwish", "Repeat",
]


def Flatten(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """flatten

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "flatten", {"name": name, "device": device})


def Dense(units: int, *, activation: Any = None, bias: Optional[bool] = None, kernel_initializer: Any = None, bias_initializer: Any = None,
        kernel_regularizer: Any = None, tied: Optional[str] = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """dense

    units               an integer of at least 1
    activation          a name, or a map with the key name; default linear
    bias                true or false; default true
    kernel_initializer  an initializer: a name, or a map with the key name
    bias_initializer    an initializer: a name, or a map with the key name
    kernel_regularizer  a map
    tied                a text
    name                a name without '/'
    device              a device name; default the model's
    """
    return Definition("layer", "dense", {"units": units, "activation": activation, "bias": bias, "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "tied": tied, "name": name, "device": device})


def Dropout(p: float, *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """dropout

    p       a number in [0, 1)
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "dropout", {"p": p, "name": name, "device": device})


def Activation(name: str, *, alpha: Optional[float] = None, device: Optional[str] = None) -> Definition:
    """activation

    name    the name of an activation
    alpha   a number of at least 0; default null
    device  a device name; default the model's
    """
    return Definition("layer", "activation", {"name": name, "alpha": alpha, "device": device})


def PReLU(*, start: Optional[float] = None, shared: Optional[bool] = None, name: Optional[str] = None, device: Optional[str] =
        None) -> Definition:
    """prelu

    start   a number; default 0.25
    shared  true or false; default false
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "prelu", {"start": start, "shared": shared, "name": name, "device": device})


def GLU(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """glu

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "glu", {"name": name, "device": device})


def Embedding(rows: int, dim: int, *, initializer: Any = None, padding_index: Optional[int] = None, name: Optional[str] = None, device:
        Optional[str] = None) -> Definition:
    """embedding

    rows           an integer of at least 1
    dim            an integer of at least 1
    initializer    an initializer: a name, or a map with the key name
    padding_index  an integer in [0, 1099511627776]; default null
    name           a name without '/'
    device         a device name; default the model's
    """
    return Definition("layer", "embedding", {"rows": rows, "dim": dim, "initializer": initializer, "padding_index": padding_index, "name":
        name, "device": device})


def Reshape(shape: Sequence[Any], *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """reshape

    shape   a list of sizes without the batch axis; one may be -1
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "reshape", {"shape": shape, "name": name, "device": device})


def Permute(order: Any, *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """permute

    order   the axes of a sample in their new order, counted from 1, as in [2, 1]
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "permute", {"order": order, "name": name, "device": device})


def Residual(body: Sequence[Any], *, shortcut: Any = None, activation: Any = None, name: Optional[str] = None, device: Optional[str] =
        None) -> Definition:
    """residual

    body        a list of layers
    shortcut    see docs/yaml.md
    activation  a name, or a map with the key name; default linear
    name        a name without '/'
    device      a device name; default the model's
    """
    return Definition("layer", "residual", {"body": body, "shortcut": shortcut, "activation": activation, "name": name, "device": device})


def Branches(parts: Sequence[Any], *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """branches

    parts   a list of lists of layers
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "branches", {"parts": parts, "name": name, "device": device})


def Conv1D(filters: int, kernel_size: int, *, strides: Any = None, padding: Any = None, dilation: Any = None, groups: Optional[int] = None,
        activation: Any = None, bias: Optional[bool] = None, kernel_initializer: Any = None, bias_initializer: Any = None,
        kernel_regularizer: Any = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """conv1d

    filters             an integer of at least 1
    kernel_size         an integer of at least 1
    strides             see docs/yaml.md
    padding             see docs/yaml.md
    dilation            see docs/yaml.md
    groups              an integer in [1, 1073741824]; default 1
    activation          a name, or a map with the key name; default linear
    bias                true or false; default true
    kernel_initializer  an initializer: a name, or a map with the key name
    bias_initializer    an initializer: a name, or a map with the key name
    kernel_regularizer  a map
    name                a name without '/'
    device              a device name; default the model's
    """
    return Definition("layer", "conv1d", {"filters": filters, "kernel_size": kernel_size, "strides": strides, "padding": padding,
        "dilation": dilation, "groups": groups, "activation": activation, "bias": bias, "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "name": name, "device": device})


def Conv2D(filters: int, kernel_size: Any, *, strides: Any = None, padding: Any = None, dilation: Any = None, groups: Optional[int] = None,
        activation: Any = None, bias: Optional[bool] = None, kernel_initializer: Any = None, bias_initializer: Any = None,
        kernel_regularizer: Any = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """conv2d

    filters             an integer of at least 1
    kernel_size         an integer of at least 1, or [height, width]
    strides             see docs/yaml.md
    padding             see docs/yaml.md
    dilation            see docs/yaml.md
    groups              an integer in [1, 1073741824]; default 1
    activation          a name, or a map with the key name; default linear
    bias                true or false; default true
    kernel_initializer  an initializer: a name, or a map with the key name
    bias_initializer    an initializer: a name, or a map with the key name
    kernel_regularizer  a map
    name                a name without '/'
    device              a device name; default the model's
    """
    return Definition("layer", "conv2d", {"filters": filters, "kernel_size": kernel_size, "strides": strides, "padding": padding,
        "dilation": dilation, "groups": groups, "activation": activation, "bias": bias, "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "name": name, "device": device})


def DepthwiseConv2D(kernel_size: Any, *, multiplier: Optional[int] = None, strides: Any = None, padding: Any = None, dilation: Any = None,
        activation: Any = None, bias: Optional[bool] = None, kernel_initializer: Any = None, bias_initializer: Any = None,
        kernel_regularizer: Any = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """depthwise_conv2d

    kernel_size         an integer of at least 1, or [height, width]
    multiplier          an integer in [1, 1073741824]; default 1
    strides             see docs/yaml.md
    padding             see docs/yaml.md
    dilation            see docs/yaml.md
    activation          a name, or a map with the key name; default linear
    bias                true or false; default true
    kernel_initializer  an initializer: a name, or a map with the key name
    bias_initializer    an initializer: a name, or a map with the key name
    kernel_regularizer  a map
    name                a name without '/'
    device              a device name; default the model's
    """
    return Definition("layer", "depthwise_conv2d", {"multiplier": multiplier, "kernel_size": kernel_size, "strides": strides, "padding":
        padding, "dilation": dilation, "activation": activation, "bias": bias, "kernel_initializer": kernel_initializer, "bias_initializer":
        bias_initializer, "kernel_regularizer": kernel_regularizer, "name": name, "device": device})


def Conv2DTranspose(filters: int, kernel_size: Any, *, strides: Any = None, padding: Any = None, dilation: Any = None, groups: Optional[int]
        = None, output_padding: Any = None, activation: Any = None, bias: Optional[bool] = None, kernel_initializer: Any = None,
        bias_initializer: Any = None, kernel_regularizer: Any = None, name: Optional[str] = None, device: Optional[str] =
        None) -> Definition:
    """conv2d_transpose

    filters             an integer of at least 1
    kernel_size         an integer of at least 1, or [height, width]
    strides             see docs/yaml.md
    padding             see docs/yaml.md
    dilation            see docs/yaml.md
    groups              an integer in [1, 1073741824]; default 1
    output_padding      see docs/yaml.md
    activation          a name, or a map with the key name; default linear
    bias                true or false; default true
    kernel_initializer  an initializer: a name, or a map with the key name
    bias_initializer    an initializer: a name, or a map with the key name
    kernel_regularizer  a map
    name                a name without '/'
    device              a device name; default the model's
    """
    return Definition("layer", "conv2d_transpose", {"filters": filters, "kernel_size": kernel_size, "strides": strides, "padding": padding,
        "dilation": dilation, "groups": groups, "output_padding": output_padding, "activation": activation, "bias": bias,
        "kernel_initializer": kernel_initializer, "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "name":
        name, "device": device})


def MaxPool1D(pool_size: int, *, strides: Any = None, padding: Any = None, ceil_mode: Optional[bool] = None, dilation: Any = None, name:
        Optional[str] = None, device: Optional[str] = None) -> Definition:
    """max_pool1d

    pool_size  an integer of at least 1
    strides    see docs/yaml.md
    padding    see docs/yaml.md
    ceil_mode  true or false; default false
    dilation   see docs/yaml.md
    name       a name without '/'
    device     a device name; default the model's
    """
    return Definition("layer", "max_pool1d", {"pool_size": pool_size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode,
        "dilation": dilation, "name": name, "device": device})


def MaxPool2D(pool_size: Any, *, strides: Any = None, padding: Any = None, ceil_mode: Optional[bool] = None, dilation: Any = None, name:
        Optional[str] = None, device: Optional[str] = None) -> Definition:
    """max_pool2d

    pool_size  an integer of at least 1, or [height, width]
    strides    see docs/yaml.md
    padding    see docs/yaml.md
    ceil_mode  true or false; default false
    dilation   see docs/yaml.md
    name       a name without '/'
    device     a device name; default the model's
    """
    return Definition("layer", "max_pool2d", {"pool_size": pool_size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode,
        "dilation": dilation, "name": name, "device": device})


def AveragePool1D(pool_size: int, *, strides: Any = None, padding: Any = None, ceil_mode: Optional[bool] = None, count_include_pad:
        Optional[bool] = None, divisor: Optional[float] = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """average_pool1d

    pool_size          an integer of at least 1
    strides            see docs/yaml.md
    padding            see docs/yaml.md
    ceil_mode          true or false; default false
    count_include_pad  true or false; default true
    divisor            a number above 0; default null
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "average_pool1d", {"pool_size": pool_size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad, "divisor": divisor, "name": name, "device": device})


def AveragePool2D(pool_size: Any, *, strides: Any = None, padding: Any = None, ceil_mode: Optional[bool] = None, count_include_pad:
        Optional[bool] = None, divisor: Optional[float] = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """average_pool2d

    pool_size          an integer of at least 1, or [height, width]
    strides            see docs/yaml.md
    padding            see docs/yaml.md
    ceil_mode          true or false; default false
    count_include_pad  true or false; default true
    divisor            a number above 0; default null
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "average_pool2d", {"pool_size": pool_size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode,
        "count_include_pad": count_include_pad, "divisor": divisor, "name": name, "device": device})


def LpPool1D(pool_size: int, *, strides: Any = None, padding: Any = None, ceil_mode: Optional[bool] = None, p: Optional[float] = None, name:
        Optional[str] = None, device: Optional[str] = None) -> Definition:
    """lp_pool1d

    pool_size  an integer of at least 1
    strides    see docs/yaml.md
    padding    see docs/yaml.md
    ceil_mode  true or false; default false
    p          a number of at least 1; default 2
    name       a name without '/'
    device     a device name; default the model's
    """
    return Definition("layer", "lp_pool1d", {"pool_size": pool_size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode, "p": p,
        "name": name, "device": device})


def LpPool2D(pool_size: Any, *, strides: Any = None, padding: Any = None, ceil_mode: Optional[bool] = None, p: Optional[float] = None, name:
        Optional[str] = None, device: Optional[str] = None) -> Definition:
    """lp_pool2d

    pool_size  an integer of at least 1, or [height, width]
    strides    see docs/yaml.md
    padding    see docs/yaml.md
    ceil_mode  true or false; default false
    p          a number of at least 1; default 2
    name       a name without '/'
    device     a device name; default the model's
    """
    return Definition("layer", "lp_pool2d", {"pool_size": pool_size, "strides": strides, "padding": padding, "ceil_mode": ceil_mode, "p": p,
        "name": name, "device": device})


def GlobalAveragePool(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """global_average_pool

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "global_average_pool", {"name": name, "device": device})


def GlobalMaxPool(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """global_max_pool

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "global_max_pool", {"name": name, "device": device})


def AdaptiveAveragePool(size: Any, *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """adaptive_average_pool

    size    an integer of at least 1, or [height, width]
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "adaptive_average_pool", {"size": size, "name": name, "device": device})


def AdaptiveMaxPool(size: Any, *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """adaptive_max_pool

    size    an integer of at least 1, or [height, width]
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "adaptive_max_pool", {"size": size, "name": name, "device": device})


def Upsample2D(*, size: Any = None, interpolation: Any = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """upsample2d

    size           see docs/yaml.md
    interpolation  nearest, bilinear; default nearest
    name           a name without '/'
    device         a device name; default the model's
    """
    return Definition("layer", "upsample2d", {"size": size, "interpolation": interpolation, "name": name, "device": device})


def PadChannels(channels: int, *, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """pad_channels

    channels  an integer of at least 1
    name      a name without '/'
    device    a device name; default the model's
    """
    return Definition("layer", "pad_channels", {"channels": channels, "name": name, "device": device})


def BatchNorm(*, preset: Any = None, momentum: Optional[float] = None, epsilon: Optional[float] = None, axis: Optional[int] = None, mode:
        Any = None, scale: Optional[bool] = None, center: Optional[bool] = None, gamma_initializer: Any = None, beta_initializer: Any =
        None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """batch_norm

    preset             tenon, none, torch, keras, gorgonia; default tenon
    momentum           a number in [0, 1]; default 0.1
    epsilon            a number above 0; default 1e-05
    axis               an integer in [-8, 7]; default null
    mode               spatial, per_activation; default spatial
    scale              true or false; default true
    center             true or false; default true
    gamma_initializer  an initializer: a name, or a map with the key name
    beta_initializer   an initializer: a name, or a map with the key name
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "batch_norm", {"preset": preset, "momentum": momentum, "epsilon": epsilon, "axis": axis, "mode": mode,
        "scale": scale, "center": center, "gamma_initializer": gamma_initializer, "beta_initializer": beta_initializer, "name": name,
        "device": device})


def LayerNorm(*, axis: Optional[int] = None, epsilon: Optional[float] = None, scale: Optional[bool] = None, center: Optional[bool] = None,
        gamma_initializer: Any = None, beta_initializer: Any = None, name: Optional[str] = None, device: Optional[str] =
        None) -> Definition:
    """layer_norm

    axis               an integer in [-8, 7]; default null
    epsilon            a number above 0; default 1e-05
    scale              true or false; default true
    center             true or false; default true
    gamma_initializer  an initializer: a name, or a map with the key name
    beta_initializer   an initializer: a name, or a map with the key name
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "layer_norm", {"axis": axis, "epsilon": epsilon, "scale": scale, "center": center, "gamma_initializer":
        gamma_initializer, "beta_initializer": beta_initializer, "name": name, "device": device})


def GroupNorm(groups: int, *, epsilon: Optional[float] = None, scale: Optional[bool] = None, center: Optional[bool] = None,
        gamma_initializer: Any = None, beta_initializer: Any = None, name: Optional[str] = None, device: Optional[str] =
        None) -> Definition:
    """group_norm

    groups             an integer of at least 1
    epsilon            a number above 0; default 1e-05
    scale              true or false; default true
    center             true or false; default true
    gamma_initializer  an initializer: a name, or a map with the key name
    beta_initializer   an initializer: a name, or a map with the key name
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "group_norm", {"groups": groups, "epsilon": epsilon, "scale": scale, "center": center, "gamma_initializer":
        gamma_initializer, "beta_initializer": beta_initializer, "name": name, "device": device})


def InstanceNorm(*, epsilon: Optional[float] = None, scale: Optional[bool] = None, center: Optional[bool] = None, gamma_initializer: Any =
        None, beta_initializer: Any = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """instance_norm

    epsilon            a number above 0; default 1e-05
    scale              true or false; default true
    center             true or false; default true
    gamma_initializer  an initializer: a name, or a map with the key name
    beta_initializer   an initializer: a name, or a map with the key name
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "instance_norm", {"epsilon": epsilon, "scale": scale, "center": center, "gamma_initializer":
        gamma_initializer, "beta_initializer": beta_initializer, "name": name, "device": device})


def RMSNorm(*, axis: Optional[int] = None, epsilon: Optional[float] = None, scale: Optional[bool] = None, gamma_initializer: Any = None,
        name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """rms_norm

    axis               an integer in [-8, 7]; default null
    epsilon            a number above 0; default 1e-05
    scale              true or false; default true
    gamma_initializer  an initializer: a name, or a map with the key name
    name               a name without '/'
    device             a device name; default the model's
    """
    return Definition("layer", "rms_norm", {"axis": axis, "epsilon": epsilon, "scale": scale, "gamma_initializer": gamma_initializer,
        "name": name, "device": device})


def LRN(*, size: Optional[int] = None, alpha: Optional[float] = None, beta: Optional[float] = None, bias: Optional[float] = None, name:
        Optional[str] = None, device: Optional[str] = None) -> Definition:
    """lrn

    size    an integer in [1, 1073741824]; default 5
    alpha   a number; default 0.0001
    beta    a number; default 0.75
    bias    a number above 0; default 1
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "lrn", {"size": size, "alpha": alpha, "beta": beta, "bias": bias, "name": name, "device": device})


def LSTM(units: int, *, num_layers: Optional[int] = None, bidirectional: Optional[bool] = None, dropout: Optional[float] = None,
        return_sequences: Optional[bool] = None, forget_bias: Optional[float] = None, bias: Optional[bool] = None, kernel_initializer: Any =
        None, bias_initializer: Any = None, kernel_regularizer: Any = None, recurrent_initializer: Any = None, name: Optional[str] = None,
        device: Optional[str] = None) -> Definition:
    """lstm

    units                  an integer of at least 1
    num_layers             an integer in [1, 1000]; default 1
    bidirectional          true or false; default false
    dropout                a number in [0, 1); default 0
    return_sequences       true or false; default false
    forget_bias            a number; default 0
    bias                   true or false; default true
    kernel_initializer     an initializer: a name, or a map with the key name
    bias_initializer       an initializer: a name, or a map with the key name
    kernel_regularizer     a map
    recurrent_initializer  an initializer: a name, or a map with the key name
    name                   a name without '/'
    device                 a device name; default the model's
    """
    return Definition("layer", "lstm", {"units": units, "num_layers": num_layers, "bidirectional": bidirectional, "dropout": dropout,
        "return_sequences": return_sequences, "forget_bias": forget_bias, "bias": bias, "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "recurrent_initializer": recurrent_initializer,
        "name": name, "device": device})


def GRU(units: int, *, num_layers: Optional[int] = None, bidirectional: Optional[bool] = None, dropout: Optional[float] = None,
        return_sequences: Optional[bool] = None, linear_before_reset: Optional[bool] = None, bias: Optional[bool] = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, kernel_regularizer: Any = None, recurrent_initializer: Any = None,
        name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """gru

    units                  an integer of at least 1
    num_layers             an integer in [1, 1000]; default 1
    bidirectional          true or false; default false
    dropout                a number in [0, 1); default 0
    return_sequences       true or false; default false
    linear_before_reset    true or false; default true
    bias                   true or false; default true
    kernel_initializer     an initializer: a name, or a map with the key name
    bias_initializer       an initializer: a name, or a map with the key name
    kernel_regularizer     a map
    recurrent_initializer  an initializer: a name, or a map with the key name
    name                   a name without '/'
    device                 a device name; default the model's
    """
    return Definition("layer", "gru", {"units": units, "num_layers": num_layers, "bidirectional": bidirectional, "dropout": dropout,
        "return_sequences": return_sequences, "linear_before_reset": linear_before_reset, "bias": bias, "kernel_initializer":
        kernel_initializer, "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "recurrent_initializer":
        recurrent_initializer, "name": name, "device": device})


def RNN(units: int, *, num_layers: Optional[int] = None, bidirectional: Optional[bool] = None, dropout: Optional[float] = None,
        return_sequences: Optional[bool] = None, activation: Any = None, bias: Optional[bool] = None, kernel_initializer: Any = None,
        bias_initializer: Any = None, kernel_regularizer: Any = None, recurrent_initializer: Any = None, name: Optional[str] = None, device:
        Optional[str] = None) -> Definition:
    """rnn

    units                  an integer of at least 1
    num_layers             an integer in [1, 1000]; default 1
    bidirectional          true or false; default false
    dropout                a number in [0, 1); default 0
    return_sequences       true or false; default false
    activation             tanh, relu; default tanh
    bias                   true or false; default true
    kernel_initializer     an initializer: a name, or a map with the key name
    bias_initializer       an initializer: a name, or a map with the key name
    kernel_regularizer     a map
    recurrent_initializer  an initializer: a name, or a map with the key name
    name                   a name without '/'
    device                 a device name; default the model's
    """
    return Definition("layer", "rnn", {"units": units, "num_layers": num_layers, "bidirectional": bidirectional, "dropout": dropout,
        "return_sequences": return_sequences, "activation": activation, "bias": bias, "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "recurrent_initializer": recurrent_initializer,
        "name": name, "device": device})


def Attention(*, heads: Optional[int] = None, causal: Optional[bool] = None, kv_heads: Optional[int] = None, window: Optional[int] = None,
        rotary: Optional[bool] = None, rotary_base: Optional[float] = None, dropout: Optional[float] = None, memory: Optional[str] = None,
        bias: Optional[bool] = None, kernel_initializer: Any = None, bias_initializer: Any = None, kernel_regularizer: Any = None, name:
        Optional[str] = None, device: Optional[str] = None) -> Definition:
    """attention

    heads               an integer in [1, 1073741824]; default 1
    causal              true or false; default false
    kv_heads            an integer in [1, 1073741824]; default null
    window              an integer in [1, 1073741824]; default null
    rotary              true or false; default false
    rotary_base         a number above 0; default 10000
    dropout             a number in [0, 1); default 0
    memory              a text
    bias                true or false; default true
    kernel_initializer  an initializer: a name, or a map with the key name
    bias_initializer    an initializer: a name, or a map with the key name
    kernel_regularizer  a map
    name                a name without '/'
    device              a device name; default the model's
    """
    return Definition("layer", "attention", {"heads": heads, "causal": causal, "kv_heads": kv_heads, "window": window, "rotary": rotary,
        "rotary_base": rotary_base, "dropout": dropout, "memory": memory, "bias": bias, "kernel_initializer": kernel_initializer,
        "bias_initializer": bias_initializer, "kernel_regularizer": kernel_regularizer, "name": name, "device": device})


def PositionEmbedding(length: int, *, initializer: Any = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """position_embedding

    length       an integer of at least 1
    initializer  an initializer: a name, or a map with the key name
    name         a name without '/'
    device       a device name; default the model's
    """
    return Definition("layer", "position_embedding", {"length": length, "initializer": initializer, "name": name, "device": device})


def SinusoidalPosition(*, wavelength: Optional[float] = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """sinusoidal_position

    wavelength  a number above 0; default 10000
    name        a name without '/'
    device      a device name; default the model's
    """
    return Definition("layer", "sinusoidal_position", {"wavelength": wavelength, "name": name, "device": device})


def MeanOverTime(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """mean_over_time

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "mean_over_time", {"name": name, "device": device})


def VendorOp(op: str, *, version: Optional[int] = None, attributes: Any = None, name: Optional[str] = None, device: Optional[str] =
        None) -> Definition:
    """vendor_op

    op          the name of a vendor's op, as in com.example.SoftClip
    version     an integer in [0, 1073741824]; default 0
    attributes  a map of the op's attributes; default none
    name        a name without '/'
    device      a device name; default the model's
    """
    return Definition("layer", "vendor_op", {"op": op, "version": version, "attributes": attributes, "name": name, "device": device})


def ONNX(file: Any, *, output: Optional[str] = None, outputs: Any = None, input: Optional[str] = None, constants: Any = None, frozen: Any =
        None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """onnx

    file       the path of an ONNX file
    output     a text
    outputs    names of values; default the file's
    input      a text
    constants  a map of inputs and numbers; default none
    frozen     true, or globs of names of weights in the file; default false
    name       a name without '/'
    device     a device name; default the model's
    """
    return Definition("layer", "onnx", {"file": file, "output": output, "outputs": outputs, "input": input, "constants": constants,
        "frozen": frozen, "name": name, "device": device})


def ReLU(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """relu

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "relu", {"name": name, "device": device})


def Sigmoid(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """sigmoid

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "sigmoid", {"name": name, "device": device})


def Tanh(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """tanh

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "tanh", {"name": name, "device": device})


def Softmax(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """softmax

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "softmax", {"name": name, "device": device})


def LogSoftmax(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """log_softmax

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "log_softmax", {"name": name, "device": device})


def ReLU6(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """relu6

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "relu6", {"name": name, "device": device})


def LeakyReLU(*, alpha: Optional[float] = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """leaky_relu

    alpha   a number of at least 0; default null
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "leaky_relu", {"alpha": alpha, "name": name, "device": device})


def ELU(*, alpha: Optional[float] = None, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """elu

    alpha   a number of at least 0; default null
    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "elu", {"alpha": alpha, "name": name, "device": device})


def Softplus(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """softplus

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "softplus", {"name": name, "device": device})


def Mish(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """mish

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "mish", {"name": name, "device": device})


def GELU(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """gelu

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "gelu", {"name": name, "device": device})


def SiLU(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """silu

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "silu", {"name": name, "device": device})


def GELUTanh(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """gelu_tanh

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "gelu_tanh", {"name": name, "device": device})


def SELU(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """selu

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "selu", {"name": name, "device": device})


def HardSwish(*, name: Optional[str] = None, device: Optional[str] = None) -> Definition:
    """hard_swish

    name    a name without '/'
    device  a device name; default the model's
    """
    return Definition("layer", "hard_swish", {"name": name, "device": device})


def Repeat(times: int, layers: Sequence[Any]) -> Definition:
    """repeat

    times   an integer of at least 1
    layers  a list of layers
    """
    return Definition("layer", "repeat", {"times": times, "layers": layers})
