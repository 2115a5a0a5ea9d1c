#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench conv`: single convolutions and their gradients in PyTorch.

Usage  conv_torch.py '[[channels, size, filters, kernel, stride], ...]' --pass forward|dx|dw --batch N --runs N [--device cuda ...]

Padding is kernel / 2, without bias. 16-bit precisions have operands and results of that type. GPU times come from events around ten
convolutions in a row, CPU times from the clock. Prints one JSON object: {"name": "...", "layers": [[seconds per run], ...]}, or
{"absent": why}.
"""
import argparse
import json

import torch_device


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("layers", type=json.loads)
    parser.add_argument("--pass", dest="which", choices=["forward", "dx", "dw"], default="forward")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    arguments, torch = torch_device.open_torch(parser)
    dtype = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}.get(arguments.precision, torch.float32)
    layout = torch_device.memory_format(torch, arguments)

    def numbers(*shape):
        values = torch.empty(shape, device=arguments.device).uniform_(-1, 1)
        return values.to(dtype).contiguous(memory_format=layout)

    def run_of(channels, size, filters, kernel, stride):
        padding = kernel // 2
        x, w = numbers(arguments.batch, channels, size, size), numbers(filters, channels, kernel, kernel)
        if arguments.which == "forward":
            return lambda: torch.nn.functional.conv2d(x, w, None, stride, padding)
        out = (size + 2 * padding - kernel) // stride + 1
        dy = numbers(arguments.batch, filters, out, out)
        output_mask = [arguments.which == "dx", arguments.which == "dw", False]
        backward = torch.ops.aten.convolution_backward
        return lambda: backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, output_mask)

    times = []
    with torch.inference_mode():
        for layer in arguments.layers:
            run = run_of(*layer)
            if arguments.device == "cuda":
                times.append(torch_device.gpu_seconds(torch, run, arguments.runs))
            else:
                times.append(torch_device.time_runs(torch, arguments, run, arguments.runs, 2)[0])
    print(json.dumps({"name": torch_device.name_of(torch, arguments), "layers": times}))


if __name__ == "__main__":
    main()
