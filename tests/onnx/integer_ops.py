#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the integers of quantised products with those of ONNX Runtime: QLinearConv, QLinearMatMul, and nets of DequantizeLinear, Conv,
Relu, MatMul, Gemm, MaxPool and QuantizeLinear, of random parameters; and MatMulNBits, whose results are numbers.

Usage: integer_ops.py --tenon build/release/bin/tenon [--device NAME] [--filter GLOB]

Integers have to be equal. Needs onnx, onnxruntime and numpy.
"""
import fnmatch
import pathlib
import sys
import tempfile

import agreement
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BYTES = {"u8": (np.uint8, TensorProto.UINT8), "i8": (np.int8, TensorProto.INT8)}


class Net:
    """Nodes and initializers of one graph, drawn from one generator."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs = [], [], {}

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def bytes(self, dtype, shape):
        info = np.iinfo(BYTES[dtype][0])
        return self.random.integers(info.min, info.max + 1, shape).astype(BYTES[dtype][0])

    def scale(self, usual, count=None):
        return np.float32(self.random.uniform(0.5, 2, count) * usual).astype(np.float32)

    def zero_point(self, dtype, middle=True):
        low = 0 if dtype == "u8" else -128
        return BYTES[dtype][0](self.random.integers(90, 160) + low if middle else low)

    def input(self, dtype, shape):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (BYTES[dtype][1] if dtype in BYTES else TensorProto.FLOAT,
                             self.bytes(dtype, shape) if dtype in BYTES else self.random.standard_normal(shape).astype(np.float32))
        return name

    def node(self, op, operands, domain="", **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], domain=domain, **attributes))
        return name

    def model(self, result, dtype):
        element = BYTES[dtype][1] if dtype in BYTES else TensorProto.FLOAT
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info(name, element_type, array.shape)
                                                      for name, (element_type, array) in self.inputs.items()],
                                  [helper.make_tensor_value_info(result, element, None)], self.initializers)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def weights(net, shape, axis, dtype="i8"):
    """Weights, one scale for each line of the axis, and zero points of 0."""
    w = net.bytes(dtype, shape)
    scales = net.scale(0.01, shape[axis])
    return net.constant(w), net.constant(scales), net.constant(np.zeros(shape[axis], w.dtype)), scales


def linear_conv(x_dtype, y_dtype, bias, shape, filters, kernel, **attributes):
    net = Net(sum(map(ord, x_dtype + y_dtype)) + filters + sum(kernel))
    channels = shape[1] // attributes.get("group", 1)
    w, w_scale, w_zero, scales = weights(net, (filters, channels, *kernel), 0)
    x_scale = net.scale(0.02)
    y_scale = np.float32(120 * np.sqrt(channels * np.prod(kernel)) * 0.02 * 0.01)
    operands = [net.input(x_dtype, shape), net.constant(x_scale), net.constant(net.zero_point(x_dtype)), w, w_scale, w_zero,
                net.constant(y_scale), net.constant(net.zero_point(y_dtype))]
    if bias:
        operands.append(net.constant(net.random.integers(-5000, 5000, filters).astype(np.int32)))
    return net, net.node("QLinearConv", operands, **attributes), y_dtype


def linear_matmul(a_dtype, y_dtype, a, b):
    net = Net(len(a) * 100 + b[-1])
    w, w_scale, w_zero, _ = weights(net, b, len(b) - 1)
    if len(b) > 2:
        w_scale, w_zero = net.constant(np.float32(0.01)), net.constant(np.int8(0))
    y_scale = np.float32(120 * np.sqrt(a[-1]) * 0.02 * 0.01)
    operands = [net.input(a_dtype, a), net.constant(net.scale(0.02)), net.constant(net.zero_point(a_dtype)), w, w_scale, w_zero,
                net.constant(y_scale), net.constant(net.zero_point(y_dtype))]
    return net, net.node("QLinearMatMul", operands), y_dtype


def dequantised_net(relu, pool, **attributes):
    """Two convolutions, a pool and a Gemm between DequantizeLinear and QuantizeLinear."""
    net = Net(17 + relu + 2 * pool)
    x_scale, x_zero = np.float32(0.02), net.constant(np.uint8(0 if relu else 128))
    x = net.node("DequantizeLinear", [net.input("u8", (1, 32, 14, 15)), net.constant(x_scale), x_zero])

    def layer(op, x, shape, scale, out_scale, **more):
        w, w_scale, w_zero, scales = weights(net, shape, 0)
        floats = net.node("DequantizeLinear", [w, w_scale, w_zero], axis=0)
        bias = net.constant(net.random.integers(-3000, 3000, shape[0]).astype(np.int32))
        b = net.node("DequantizeLinear", [bias, net.constant(scale * scales), net.constant(np.zeros(shape[0], np.int32))], axis=0)
        y = net.node(op, [x, floats, b], **more)
        if relu and op == "Conv":
            y = net.node("Relu", [y])
        parameters = [net.constant(out_scale), net.constant(np.uint8(0 if relu else 128))]
        return parameters, net.node("QuantizeLinear", [y, *parameters])

    hidden_scale = np.float32(120 * np.sqrt(32 * 9) * 0.02 * 0.01)
    parameters, y = layer("Conv", x, (40, 32, 3, 3), x_scale, hidden_scale, pads=[1, 1, 1, 1], **attributes)
    y = net.node("DequantizeLinear", [y, *parameters])
    if pool:
        y = net.node("MaxPool", [y], kernel_shape=[3, 3], strides=[2, 2])
        y = net.node("DequantizeLinear", [net.node("QuantizeLinear", [y, *parameters]), *parameters])
    flat = net.node("Flatten", [y])
    size = 40 * (6 * 7 if pool else 14 * 15)
    _, y = layer("Gemm", flat, (19, size), hidden_scale, np.float32(100 * np.sqrt(size) * hidden_scale * 0.01), transB=1)
    return net, y, "u8"


def blocks(bits, rows, k, n, block_size, zero_points):
    net = Net(bits + rows)
    count = (k + block_size - 1) // block_size
    operands = [net.input("f32", (rows, k)), net.constant(net.bytes("u8", (n, count, block_size * bits // 8))),
                net.constant(net.scale(0.1, n * count))]
    if zero_points:
        operands.append(net.constant(net.bytes("u8", n * ((count * bits + 7) // 8))))
    return net, net.node("MatMulNBits", operands, domain="com.microsoft", K=k, N=n, bits=bits, block_size=block_size), "f32"


def cases():
    for x in BYTES:
        for y in BYTES:
            if x != y:
                continue  # ONNX Runtime has no such kernels
            yield f"conv/{x}/{y}", linear_conv(x, y, True, (2, 48, 13, 12), 70, (3, 3), pads=[1, 1, 1, 1])
            yield f"conv_1x1/{x}/{y}", linear_conv(x, y, False, (1, 64, 9, 9), 33, (1, 1))
            yield f"conv_strided/{x}/{y}", linear_conv(x, y, True, (1, 3, 31, 30), 32, (7, 7), pads=[3, 3, 3, 3], strides=[2, 2])
            yield f"conv_depthwise/{x}/{y}", linear_conv(x, y, True, (1, 96, 11, 12), 96, (3, 3), pads=[1, 1, 1, 1], group=96)
            yield f"conv_depthwise_strided/{x}/{y}", linear_conv(x, y, True, (1, 40, 11, 12), 40, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2], group=40)
            yield f"conv_grouped/{x}/{y}", linear_conv(x, y, False, (1, 24, 8, 9), 36, (3, 3), group=3)
            yield f"matmul/{x}/{y}", linear_matmul(x, y, (3, 50, 70), (70, 40))
        yield f"matmul_stack/{x}", linear_matmul(x, x, (3, 5, 16, 20), (5, 20, 24))
    for relu in (False, True):
        for pool in (False, True):
            yield f"net/relu={relu}/pool={pool}", dequantised_net(relu, pool)
    for bits in (4, 8):
        for rows in (1, 5, 40):
            yield f"blocks/{bits}/{rows}", blocks(bits, rows, 200, 90, 32, rows != 5)


def main():
    arguments = agreement.parser(__doc__.splitlines()[0]).parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (net, result, dtype) in cases():
            if not fnmatch.fnmatch(name, arguments.filter):
                continue
            file = pathlib.Path(folder) / "model.onnx"
            onnx.save(net.model(result, dtype), file)
            inputs = {key: array for key, (_, array) in net.inputs.items()}
            expected = agreement.session(file).run(None, inputs)[0]
            got = agreement.run_tenon(arguments, file, inputs)[agreement.file_name(result)]
            difference = agreement.difference(expected, got)
            right = difference == 0 if dtype in BYTES else difference < 1e-5
            wrong += not right
            print(f"{name:40} {'equal' if difference == 0 else f'differs by {difference:.2g}'}{'' if right else '  WRONG'}", flush=True)
    print(f"{wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
