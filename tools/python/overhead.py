#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python adds: milliseconds of the import, and microseconds of a net of ten nodes by Model, InferenceSession and the bare C function, of ops and
of arrays in and out, and of ONNX Runtime's session on the same file if the package onnxruntime is installed; and what a training step costs by a model
of layers and by tenon.nn.

TENON_PYTHON_NATIVE=0 leaves the native module out.

Usage: PYTHONPATH=runtime/python TENON_LIBRARY=build/release/lib/libtenon.so tools/python/overhead.py
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import time

import numpy

import tenon
from tenon import layers, nn
from tenon._library import lib, texts

REPETITIONS, ROUNDS = 2000, 7


def microseconds(functions, repetitions):
    """The least mean of each of several functions, measured in turns."""
    best = {name: float("inf") for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            begin = time.perf_counter()
            for _ in range(repetitions):
                function()
            best[name] = min(best[name], (time.perf_counter() - begin) / repetitions * 1e6)
    return best


def bare(model, name, x):
    """tenon_onnx_run with arguments that are made once."""
    inputs, outputs = (ctypes.c_void_p * 1)(x.handle), (ctypes.c_void_p * 1)()
    names, handle = texts([name]), model.handle

    def call():
        outputs[0] = None
        lib.tenon_onnx_run(handle, names, inputs, 1, outputs, 1, None)
        lib.tenon_release(outputs[0])
    return call


def bare_program(program, x):
    """tenon_program_run with arguments that are made once."""
    inputs, outputs, handle = (ctypes.c_void_p * 1)(x.handle), (ctypes.c_void_p * 1)(), program.handle

    def call():
        outputs[0] = None
        lib.tenon_program_run(handle, inputs, 1, outputs, 1, None)
        lib.tenon_release(outputs[0])
    return call


def bare_model(model, x):
    """tenon_model_predict with arguments that are made once."""
    inputs, outputs, handle = (ctypes.c_void_p * 1)(x.handle), (ctypes.c_void_p * 1)(), model.handle

    def call():
        lib.tenon_model_predict(handle, None, inputs, 1, 1, 0, None, outputs, 1)
        lib.tenon_release(outputs[0])
    return call


def steps():
    """A step of Adam on 64 samples through 784-256-10, by a model of layers and by tenon.nn."""
    x, y = numpy.random.rand(64, 784).astype("float32"), numpy.arange(64) % 10
    model = tenon.Sequential([layers.Dense(256, activation="relu"), layers.Dense(10)])
    model.compile("adam", loss=tenon.losses.SparseCategoricalCrossentropy(from_logits=True))
    network = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = nn.Optimizer("adam", learning_rate=1e-3)
    gradient = tenon.value_and_grad(lambda network, x, y: nn.functional.cross_entropy(network(x), y))

    def step(x, y):
        value, gradients = gradient(network, x, y)
        optimizer.update(network, gradients)
        return value
    traced, frozen, predict = tenon.function(step), tenon.function(network, freeze=True), tenon.function(network)
    return {"Model.train_on_batch": lambda: model.train_on_batch(x, y), "nn: a step in tenon.function": lambda: traced(x, y),
            "nn: value_and_grad, then update": lambda: step(x, y), "nn: tenon.function(network)": lambda: predict(x),
            "nn: the same with freeze=True": lambda: frozen(x)}


def import_time():
    """The least CPU time of a process that imports the package, without that of one that does not, in ms."""
    def least(code):
        spent = []
        for _ in range(10):
            before = os.times()
            subprocess.run([sys.executable, "-c", code], check=True)
            after = os.times()
            spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return min(spent) * 1e3
    return least("import tenon") - least("pass")


def main():
    print(f"{'import tenon':34} {import_time():8.0f} ms")
    net = tenon.Sequential([each for _ in range(5) for each in (layers.Dense(32), layers.ReLU())], input_shape=[32])
    array = numpy.linspace(-1, 1, 32, dtype="float32").reshape(1, 32)
    x = tenon.asarray(array)
    net(x)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        net.export(path)
        session = tenon.InferenceSession(path)
        name = session.get_inputs()[0].name
        program = net.freeze(1)
        binding = session.io_binding()
        binding.bind_cpu_input(name, array)
        functions = {"C: tenon_onnx_run": bare(session.model, name, x), "C: tenon_model_predict": bare_model(net, x),
                     "C: tenon_program_run": bare_program(program, x), "model(tensor)": lambda: net(x), "model(array)": lambda: net(array),
                     "Program(tensor)": lambda: program(x), "InferenceSession.run(array)": lambda: session.run(None, {name: array}),
                     "InferenceSession.run(new array)": lambda: session.run(None, {name: array[:]}),
                     "run_with_iobinding": lambda: session.run_with_iobinding(binding)}
        try:
            import onnxruntime
            options = onnxruntime.SessionOptions()
            peer = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            functions[f"onnxruntime {onnxruntime.__version__}.run(array)"] = lambda: peer.run(None, {name: array})
        except ImportError:
            print("onnxruntime is not installed", file=sys.stderr)
        y = x + 1
        functions.update({"asarray(numpy)": lambda: tenon.asarray(array), "tensor.numpy()": lambda: y.numpy(), "tensor + tensor": lambda: y + y,
                          "ops.relu": lambda: tenon.ops.relu(y), "numpy.from_dlpack(tensor)": lambda: numpy.from_dlpack(y)})
        traced = tenon.function(lambda x: x + 1.0)
        functions["tenon.function(x + 1)"] = lambda: traced(y)
        for each, value in microseconds(functions, REPETITIONS).items():
            print(f"{each:34} {value:8.2f} us")
    for each, value in microseconds(steps(), 50).items():
        print(f"{each:34} {value:8.2f} us")


if __name__ == "__main__":
    main()
