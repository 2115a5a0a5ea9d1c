#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench attention`: scaled_dot_product_attention and its gradient in PyTorch.

Usage  attention_torch.py '[[batch, heads, length, size, causal], ...]' --pass forward|gradient --runs N [--device cuda ...]

On a GPU each of PyTorch's implementations is tried, and the fastest counts. GPU times come from events around ten runs in a row, CPU times
from the clock. Prints one JSON object: {"name": "...", "layers": [[seconds per run], ...]}, or {"absent": why}.
"""
import argparse
import json
import statistics

import torch_device


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", type=json.loads)
    parser.add_argument("--pass", dest="which", choices=["forward", "gradient"], default="forward")
    parser.add_argument("--runs", type=int, default=10)
    arguments, torch = torch_device.open_torch(parser)
    dtype = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}.get(arguments.precision, torch.float32)
    attention = torch.nn.functional.scaled_dot_product_attention

    def run_of(batch, heads, length, size, causal):
        q, k, v, dy = (torch.empty(batch, heads, length, size, device=arguments.device).uniform_(-1, 1).to(dtype) for _ in range(4))
        if arguments.which == "forward":
            return lambda: attention(q, k, v, is_causal=bool(causal))
        operands = [x.requires_grad_() for x in (q, k, v)]
        y = attention(*operands, is_causal=bool(causal))
        return lambda: torch.autograd.grad(y, operands, dy, retain_graph=True)

    def best_on_gpu(shape):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        best = None
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
            try:
                with sdpa_kernel(backend):
                    run = run_of(*shape)
                    seconds = torch_device.gpu_seconds(torch, run, arguments.runs)
            except RuntimeError:  # it does not support the dtype
                continue
            if best is None or statistics.median(seconds) < statistics.median(best):
                best = seconds
        return best

    times = []
    for shape in arguments.shapes:
        if arguments.device == "cuda":
            times.append(best_on_gpu(shape))
        else:
            times.append(torch_device.time_runs(torch, arguments, run_of(*shape), arguments.runs, 2)[0])
    print(json.dumps({"name": torch_device.name_of(torch, arguments), "layers": times}))


if __name__ == "__main__":
    main()
