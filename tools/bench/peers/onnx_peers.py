#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peers of `tenon bench FILE.onnx` and, in inference, of `tenon bench nets`: an ONNX model in another runtime, on the CPU.

Usage  onnx_peers.py onnxruntime|openvino MODEL.onnx --threads N [--precision f32|bf16]

Prints one JSON object: {"name": "ONNX Runtime 1.32.0, 2 threads", "load_seconds", "base_rss_bytes"}, or {"absent": why}. MODEL.onnx may be -,
which loads nothing. A runtime that cannot round to bf16 computes in f32, and its name lacks the precision. Answers each line of stdin, {"folder": DIR, "inputs": [name of DIR/input_0.npy, ...], "runs": N, "save": bool}, by
{"seconds": [one per run], "cpu_seconds": [...], "peak_rss_bytes", "outputs": number}, or {"absent": why}. With "save", the outputs of
the last run are in DIR/<runtime>_output_<i>.npy. Times are those of the call of the runtime, from arrays in memory to arrays in memory.
"""
import argparse
import importlib
import json
import os
import sys
import time


class OnnxRuntime:
    package, title = "onnxruntime", "ONNX Runtime"
    precisions = ["f32"]

    def __init__(self, module):
        self.module, self.version = module, module.__version__

    def load(self, path, threads, _precision):
        options = self.module.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = self.module.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, feeds):
        return self.session.run(None, feeds)


class OpenVino:
    package, title = "openvino", "OpenVINO"
    precisions = ["f32", "bf16"]

    def __init__(self, module):
        self.module, self.version = module, module.__version__.split("-")[0]

    def load(self, path, threads, precision):
        core = self.module.Core()
        # Without the hint it would round to bf16 on processors with units for that.
        properties = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
        self.model = core.compile_model(core.read_model(path), "CPU", properties)
        self.request = self.model.create_infer_request()
        self.known = {name for port in self.model.inputs for name in port.get_names()}

    def run(self, feeds):
        # It drops inputs that no output depends on.
        given = {name: feed for name, feed in feeds.items() if name in self.known}
        results = self.request.infer(given, share_inputs=True, share_outputs=True)
        return [results[i] for i in range(len(self.model.outputs))]


def memory(field):
    """A figure of /proc/self/status in bytes: VmRSS, or VmHWM, its peak; 0 where there is none. getrusage would count the parent, too."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":")), 0)
    except OSError:
        return 0


def time_runs(numpy, runtime, request, feeds):
    """The answer to a request."""
    folder = request["folder"]
    if folder not in feeds:
        feeds[folder] = {name: numpy.load(os.path.join(folder, f"input_{i}.npy")) for i, name in enumerate(request["inputs"])}
    seconds, cpu_seconds, results = [], [], []
    for _ in range(request["runs"]):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        results = runtime.run(feeds[folder])
        seconds.append(time.perf_counter() - begin)
        cpu_seconds.append(time.process_time() - cpu_begin)
    answer = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_rss_bytes": memory("VmHWM"), "outputs": len(results)}
    if request["save"]:
        for i, result in enumerate(results):
            numpy.save(os.path.join(folder, f"{runtime.package}_output_{i}.npy"), result)
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runtime", choices=["onnxruntime", "openvino"])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print

    def answer(**fields):
        print(json.dumps(fields), file=answers, flush=True)

    kind = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}[arguments.runtime]
    try:
        import numpy
        runtime = kind(importlib.import_module(kind.package))
    except ImportError as error:
        return answer(absent=f"{kind.title}: {sys.executable}: {error} (pip install {kind.package})")
    rounds = arguments.precision != "f32" and arguments.precision in kind.precisions
    name = f"{kind.title} {runtime.version}, {arguments.precision + ', ' if rounds else ''}{arguments.threads} threads"
    if arguments.model == "-":
        return answer(name=name)
    try:
        base, begin = memory("VmRSS"), time.perf_counter()
        runtime.load(arguments.model, arguments.threads, arguments.precision if rounds else "f32")
        answer(name=name, load_seconds=time.perf_counter() - begin, base_rss_bytes=base)
        feeds = {}
        for line in sys.stdin:
            answer(**time_runs(numpy, runtime, json.loads(line), feeds))
    except Exception as error:  # whatever the runtimes raise: the model is not for this one
        answer(absent=f"{name}: {error}")


if __name__ == "__main__":
    main()
