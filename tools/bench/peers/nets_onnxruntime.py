#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench nets --phase infer`: the same net in ONNX Runtime, on the CPU.

Usage  nets_onnxruntime.py NET.onnx --threads N --runs N

NET.onnx is what nets_torch.py --export writes. Prints one JSON object:
{"name": "ONNX Runtime 1.30.0, 2 threads", "seconds": [one per run], "cpu_seconds": [...]}, or {"absent": why}.
"""
import argparse
import json
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("net")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    try:
        import numpy
        import onnxruntime
    except ImportError as error:
        print(json.dumps({"absent": f"{sys.executable}: {error} (pip install onnxruntime)"}))
        return

    if arguments.net == "-":  # only checks that it is installed
        print(json.dumps({"name": f"ONNX Runtime {onnxruntime.__version__}"}))
        return
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(arguments.net, options, providers=["CPUExecutionProvider"])
    model_input = session.get_inputs()[0]
    random = numpy.random.default_rng(1)
    if model_input.type == "tensor(int64)":
        x = random.integers(0, 50, model_input.shape)
    else:
        x = random.random(model_input.shape, dtype=numpy.float32)
    seconds, cpu_seconds = [], []
    for run in range(arguments.runs + 1):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        session.run(None, {model_input.name: x})
        if run > 0:
            seconds.append(time.perf_counter() - begin)
            cpu_seconds.append(time.process_time() - cpu_begin)
    name = f"ONNX Runtime {onnxruntime.__version__}, {arguments.threads} threads"
    print(json.dumps({"name": name, "seconds": seconds, "cpu_seconds": cpu_seconds}))


if __name__ == "__main__":
    main()
