#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench generate`: the same net in PyTorch, eager, with the keys and values of past steps kept in one tensor a layer.

Prints one JSON object: {"name", "seconds": [per step of each sample], "cpu_seconds": [...]}, or {"absent": why}.

With --weights FILE.npz, of `tenon weights export` for models/gpt, it continues --prompt (labels) greedily instead, and prints
{"labels": [...]}: `tenon generate --temperature 0` has to give the same.
"""
import argparse
import json
import math
import time

import torch_device


def make_weights(torch, a):
    weights = {"characters/embeddings": torch.randn(a.labels, a.width) * 0.02}
    def norm(name):
        weights[f"{name}/gamma"], weights[f"{name}/beta"] = torch.ones(a.width), torch.zeros(a.width)
    def dense(name, kernel, bias, rows, columns):
        weights[f"{name}/{kernel}"], weights[f"{name}/{bias}"] = torch.randn(rows, columns) * 0.02, torch.zeros(columns)
    for i in range(a.blocks):
        first, second = block_names(i)
        norm(f"{first}/layer_norm")
        for part in ["query", "key", "value", "output"]:
            dense(f"{first}/attention", f"{part}_kernel", f"{part}_bias", a.width, a.width)
        norm(f"{second}/layer_norm")
        dense(f"{second}/dense", "kernel", "bias", a.width, 4 * a.width)
        dense(f"{second}/dense_1", "kernel", "bias", 4 * a.width, a.width)
    norm("layer_norm")
    return weights


def block_names(i):
    """The two residual layers of block i."""
    return ["residual" if k == 0 else f"residual_{k}" for k in (2 * i, 2 * i + 1)]


class Net:
    def __init__(self, torch, weights, a):
        self.torch, self.heads, self.width, self.blocks = torch, a.heads, a.width, a.blocks
        # PyTorch stores kernels as (out, in).
        self.w = {name: (w.t().contiguous() if name.endswith("kernel") else w).to(a.device) for name, w in weights.items()}
        size = a.width // a.heads
        self.keys = torch.zeros(a.blocks, 1, a.heads, a.capacity, size, device=a.device)
        self.values = torch.zeros_like(self.keys)
        angles = torch.arange(a.capacity)[:, None] / 10000 ** (torch.arange(size // 2) / (size / 2))
        self.cos, self.sin = torch.cos(angles).to(a.device), torch.sin(angles).to(a.device)

    def rotated(self, x, begin, end):
        a, b = x.chunk(2, -1)
        cos, sin = self.cos[begin:end], self.sin[begin:end]
        return self.torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def step(self, labels, begin):
        """The scores of the step after labels (n), which are steps begin to begin + n."""
        torch, w = self.torch, self.w
        functional = torch.nn.functional
        end = begin + len(labels)
        x = functional.embedding(labels, w["characters/embeddings"])[None]
        norm = lambda name, x: functional.layer_norm(x, [self.width], w[f"{name}/gamma"], w[f"{name}/beta"])
        for i in range(self.blocks):
            first, second = block_names(i)
            h = norm(f"{first}/layer_norm", x)
            part = lambda name: functional.linear(h, w[f"{first}/attention/{name}_kernel"], w[f"{first}/attention/{name}_bias"]).view(
                1, len(labels), self.heads, -1).transpose(1, 2)
            self.keys[i, :, :, begin:end] = self.rotated(part("key"), begin, end)
            self.values[i, :, :, begin:end] = part("value")
            mask = None if len(labels) == 1 else torch.ones(len(labels), end, dtype=torch.bool, device=x.device).tril(begin)
            seen = functional.scaled_dot_product_attention(self.rotated(part("query"), begin, end), self.keys[i, :, :, :end],
                                                           self.values[i, :, :, :end], mask)
            seen = seen.transpose(1, 2).reshape(1, len(labels), self.width)
            x = x + functional.linear(seen, w[f"{first}/attention/output_kernel"], w[f"{first}/attention/output_bias"])
            h = functional.gelu(functional.linear(norm(f"{second}/layer_norm", x), w[f"{second}/dense/kernel"], w[f"{second}/dense/bias"]))
            x = x + functional.linear(h, w[f"{second}/dense_1/kernel"], w[f"{second}/dense_1/bias"])
        return functional.linear(norm("layer_norm", x[:, -1]), w["characters/embeddings"])[0]


def main():
    parser = argparse.ArgumentParser()
    for name, default in [("width", 128), ("heads", 4), ("blocks", 4), ("labels", 256), ("capacity", 1024), ("position", 10), ("runs", 11),
                          ("steps", 16), ("count", 100)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--weights", help="an .npz file of weights: continue --prompt and print the labels")
    parser.add_argument("--prompt", default="0", help="labels, separated by commas")
    a, torch = torch_device.open_torch(parser)
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        torch_device.absent(f"PyTorch {torch.__version__} has no scaled_dot_product_attention; it came with 2.0")
    with torch.inference_mode():
        if a.weights:
            import numpy
            net = Net(torch, {name: torch.from_numpy(value) for name, value in numpy.load(a.weights).items()}, a)
            labels = [int(label) for label in a.prompt.split(",")]
            scores, out = net.step(torch.tensor(labels), 0), []
            for i in range(a.count):
                out.append(int(scores.argmax()))
                scores = net.step(torch.tensor([out[-1]]), len(labels) + i)
            print(json.dumps({"labels": out}))
            return
        net = Net(torch, make_weights(torch, a), a)
        prompt = torch.arange(a.position, device=a.device) % a.labels
        seconds, cpu_seconds = [], []
        wait = torch.cuda.synchronize if a.device == "cuda" else lambda: None
        for run in range(-1, a.runs):
            net.step(prompt, 0)
            wait()
            begin, cpu = time.perf_counter(), time.process_time()
            for i in range(a.steps):
                net.step(prompt[:1], a.position + i).cpu()
            wait()
            if run >= 0:
                seconds.append((time.perf_counter() - begin) / a.steps)
                cpu_seconds.append((time.process_time() - cpu) / a.steps)
    print(json.dumps({"name": torch_device.name_of(torch, a), "seconds": seconds, "cpu_seconds": cpu_seconds}))


if __name__ == "__main__":
    main()
