#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench elementwise`: the same ops in PyTorch, eager, on the CPU, with preallocated results.

Prints one JSON object: {"name": "PyTorch 1.13.0, 2 threads", "ns": {op: [ns of each sample]}}, or {"absent": why}.
"""
import argparse
import json
import time

import torch_device


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ops", required=True)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=21)
    arguments, torch = torch_device.open_torch(parser)
    n = arguments.count
    x, y, out = torch.rand(n) * 1.9 + 0.1, torch.rand(n) * 1.9 + 0.1, torch.empty(n)
    bodies = {
        "copy": lambda: out.copy_(x),
        "add": lambda: torch.add(x, y, out=out),
        "mul": lambda: torch.mul(x, y, out=out),
        "relu": lambda: torch.clamp_min(x, 0, out=out),
        "gelu": lambda: torch.nn.functional.gelu(x),
        "pow": lambda: torch.pow(x, y, out=out),
        "sum": lambda: torch.sum(x),
        "max": lambda: torch.max(x),
    }
    for name in ["exp", "log", "sin", "tanh", "sigmoid", "erf"]:
        bodies[name] = lambda function=getattr(torch, name): function(x, out=out)

    results = {}
    with torch.inference_mode():
        for name in arguments.ops.split(","):
            if name not in bodies:
                continue
            body = bodies[name]
            for _ in range(5):
                body()
            repetitions, samples = 1, []
            while True:  # a sample lasts at least a millisecond
                begin = time.perf_counter_ns()
                for _ in range(repetitions):
                    body()
                if time.perf_counter_ns() - begin >= 1_000_000:
                    break
                repetitions *= 2
            for _ in range(arguments.samples):
                begin = time.perf_counter_ns()
                for _ in range(repetitions):
                    body()
                samples.append((time.perf_counter_ns() - begin) / repetitions)
            results[name] = samples
    print(json.dumps({"name": f"PyTorch {torch.__version__} eager, {torch.get_num_threads()} threads", "ns": results}))


if __name__ == "__main__":
    main()
