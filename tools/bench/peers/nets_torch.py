#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench nets`: the same net in PyTorch, eager or with torch.compile.

Usage  nets_torch.py NET.json --phase infer|train --batch N --threads N --runs N [--optimizer] [--sum] [--export NET.onnx]
                     [--device cpu|cuda] [--precision float32|tf32|mixed_bfloat16|mixed_float16] [--channels-last] [--compile]

NET.json is what tools/bench/nets_json.h describes. `infer` is a forward pass without gradients; `train` forward, loss and gradients, with
--optimizer followed by a step of plain SGD. --sum: a single layer, whose backward starts from a given gradient and includes its input.
Mixed precisions use autocast, mixed_float16 with a GradScaler. x and labels are in device memory, as ours are.
--export writes the net as ONNX and times nothing. Prints one JSON object:
{"name": "PyTorch 1.13.0 eager, 2 threads", "seconds": [one per run], "cpu_seconds": [...]}, or {"absent": why}.
"""
import argparse
import json
import warnings

import torch_device


def build(torch, net):
    """The module of a net, and its output's shape for one sample."""
    nn = torch.nn
    functional = nn.functional

    class Function(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)

    class Residual(nn.Module):
        def __init__(self, body, shortcut):
            super().__init__()
            self.body, self.shortcut = body, shortcut

        def forward(self, x):
            return self.body(x) + self.shortcut(x)

    class Branches(nn.Module):
        def __init__(self, parts):
            super().__init__()
            self.parts = nn.ModuleList(parts)

        def forward(self, x):
            return torch.cat([part(x) for part in self.parts], 1)

    class Recurrent(nn.Module):
        def __init__(self, features, layer):
            super().__init__()
            self.lstm = nn.LSTM(features, layer["units"], layer["num_layers"], batch_first=True, bidirectional=layer["bidirectional"])
            self.sequences = layer["return_sequences"]

        def forward(self, x):
            y, _ = self.lstm(x)
            return y if self.sequences else y[:, -1]

    activations = {"relu": lambda: nn.ReLU(inplace=True), "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "gelu": nn.GELU}

    def activation(name):
        # a final softmax is part of PyTorch's loss
        return [activations[name]()] if name in activations else []

    def sides(layer):
        """Padding as PyTorch's layers take it: equal on both sides."""
        padding = layer["padding"]
        if any(before != after for before, after in padding) or layer["same"]:
            raise ValueError("padding that differs between sides")
        return [before for before, _ in padding] or 0

    def pool(layer):
        one = len(layer["size"]) == 1
        strides = layer["strides"] or layer["size"]
        if layer["kind"].startswith("max"):
            return (nn.MaxPool1d if one else nn.MaxPool2d)(layer["size"], strides, sides(layer), ceil_mode=layer["ceil_mode"])
        kind = nn.AvgPool1d if one else nn.AvgPool2d
        return kind(layer["size"], strides, sides(layer), layer["ceil_mode"], layer["count_include_pad"])

    def convolution(layer, shape):
        one = len(layer["size"]) == 1
        return (nn.Conv1d if one else nn.Conv2d)(
            shape[0], layer["units"], layer["size"], layer["strides"] or 1, sides(layer), layer["dilation"] or 1, layer["groups"], layer["bias"])

    def modules_of(layer, shape):
        kind = layer["kind"]
        if kind in ("conv1d", "conv2d"):
            return [convolution(layer, shape)]
        if kind.startswith(("max_pool", "average_pool")):
            return [pool(layer)]
        if kind == "dense":
            return [nn.Linear(shape[-1], layer["units"], layer["bias"])]
        if kind == "batch_norm":
            return [(nn.BatchNorm1d if len(shape) < 3 else nn.BatchNorm2d)(shape[0], layer["epsilon"], layer["momentum"])]
        if kind == "residual":
            return [Residual(*(sequence(part, shape)[0] for part in layer["parts"]))]
        if kind == "branches":
            return [Branches([sequence(part, shape)[0] for part in layer["parts"]])]
        if kind == "flatten":
            return [nn.Flatten()]
        if kind == "reshape":
            return [nn.Unflatten(1, layer["shape"]) if len(shape) == 1 else Function(lambda x: x.reshape(x.shape[0], *layer["shape"]))]
        if kind == "dropout":
            return [nn.Dropout(layer["p"])]
        if kind == "global_average_pool":
            return [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        if kind == "pad_channels":
            return [Function(lambda x: functional.pad(x, (0, 0, 0, 0, 0, layer["units"] - x.shape[1])))]
        if kind == "lrn":
            return [nn.LocalResponseNorm(layer["neighbours"], layer["alpha"], layer["beta"], layer["k"])]
        if kind == "embedding":
            return [nn.Embedding(layer["rows"], layer["dim"])]
        if kind == "lstm":
            return [Recurrent(shape[-1], layer)]
        if kind == "activation":
            return []
        raise ValueError(f"unsupported layer kind {kind}")

    def sequence(layers, shape, integers=False):
        modules = []
        for layer in layers:
            added = modules_of(layer, shape) + activation(layer.get("activation"))
            with torch.no_grad():
                x = torch.zeros(2, *shape, dtype=torch.int64 if integers else torch.float32)
                for module in added:
                    x = module(x)
            shape, integers = list(x.shape[1:]), not x.is_floating_point()
            modules += added
        return nn.Sequential(*modules), shape

    return sequence(net["layers"], net["input"], net["integers"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("--phase", choices=["infer", "train"], default="infer")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--optimizer", action="store_true")
    parser.add_argument("--sum", action="store_true")
    parser.add_argument("--export")
    arguments, torch = torch_device.open_torch(parser)

    with open(arguments.net, encoding="utf-8") as file:
        net = json.load(file)
    try:
        model, shape = build(torch, net)
    except (ValueError, KeyError) as problem:
        print(json.dumps({"absent": f"PyTorch: {net['name']} is not supported by this script: {problem}"}))
        return
    size = [arguments.batch, *net["input"]]
    x = torch.randint(0, 50, size) if net["integers"] else torch.rand(size)
    if arguments.export:
        warnings.simplefilter("ignore")  # about constants whose shapes the exporter does not track
        model.eval()
        with torch.no_grad():
            torch.onnx.export(model, x, arguments.export, opset_version=13, input_names=["x"], output_names=["y"])
        print(json.dumps({"file": arguments.export}))
        return

    model.to(arguments.device)
    if arguments.channels_last:
        for parameter in model.parameters():  # 1D convolutions have no such layout
            if parameter.dim() == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)

    x = x.to(arguments.device)
    if x.dim() == 4:
        x = x.contiguous(memory_format=torch_device.memory_format(torch, arguments))

    if arguments.compile:
        model = torch.compile(model)
    if arguments.phase == "infer":
        model.eval()

        def run():
            with torch.inference_mode(), torch_device.autocast(torch, arguments):
                model(x)
    else:
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01) if arguments.optimizer else None
        scaler = torch.cuda.amp.GradScaler(enabled=arguments.precision == "mixed_float16" and arguments.device == "cuda")
        loss_of = torch.nn.CrossEntropyLoss()
        labels = torch.randint(0, shape[-1], [arguments.batch, *shape[:-1]]).to(arguments.device)
        seed = None
        if arguments.sum:
            x.requires_grad_(True)
            with torch.no_grad(), torch_device.autocast(torch, arguments):
                seed = torch.rand_like(model(x))

        def run():
            model.zero_grad(set_to_none=True)
            x.grad = None
            with torch_device.autocast(torch, arguments):
                y = model(x)
                loss = loss_of(y.flatten(0, -2), labels.flatten()) if seed is None else None
            if seed is not None:
                y.backward(seed)
                return
            scaler.scale(loss).backward()
            if optimizer is not None:
                scaler.step(optimizer)
                scaler.update()

    # cuDNN benchmarks its algorithms in the first runs
    warm_up = 1 if arguments.device == "cpu" else 5
    seconds, cpu_seconds = torch_device.time_runs(torch, arguments, run, arguments.runs, warm_up)
    print(json.dumps({"name": torch_device.name_of(torch, arguments), "seconds": seconds, "cpu_seconds": cpu_seconds}))


if __name__ == "__main__":
    main()
