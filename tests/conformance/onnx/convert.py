#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Turns ONNX's node tests into vectors for `tenon conformance --profile onnx`.

Test-only. Reads the models and tensors of Debian's libonnx-testdata with python3-onnx, keeps the tests of one node whose operator is listed
in ops.def, moves what ONNX passes as tensors (axes, shapes) into attributes as in ops.def, and writes one JSON file:

  {"vectors": [{"name", "op", "attributes", "inputs": [null | {"dtype", "shape", "data"}], "outputs": [...]}], "left_out": {reason: count}}

`data` is the row-major bytes, little-endian, in hexadecimal. Exit code 77: the test data is not installed.
"""
import argparse
import json
import os
import re
import sys

DATA = ("/usr/share/libonnx-testdata/data/node", "/usr/share/onnx/data/node")
DTYPES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
          "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "|V2": "bf16"}  # NumPy has no bf16: two bytes
# operators that the core lowers to one node of another operator
COMPOSED = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax", "InstanceNormalization": "LayerNormalization"}
ONNX_SINCE_1 = {"Not", "Softplus"}  # every other op of version 1 belongs to the tenon domain


class LeftOut(Exception):
    """The reason why a node test is skipped."""


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def listed_ops(path):
    """ONNX's operators in ops.def (those of the tenon domain have version 1) with the dtypes that their lines name."""
    with open(path, encoding="utf-8") as file:
        lines = re.findall(r"^TENON_OP\(\d+, (\w+), (\d+), \w+, \w+, -?\d+, (\w+),", file.read(), re.M)
    floats = {"f16", "bf16", "f32", "f64"}
    kinds = {"TENON_DTYPES_FLOAT": floats, "TENON_DTYPES_NUMBER": floats | {"i32", "i64"}, "TENON_DTYPES_MOVE": set(DTYPES.values()),
             "TENON_DTYPES_INDEX": {"i64"}, "TENON_DTYPES_BOOL": {"bool"}}
    return {name: kinds[dtypes] for name, version, dtypes in lines if version != "1" or name in ONNX_SINCE_1}


def attributes_of(node, helper):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def resolved(axis, rank):
    return axis + rank if axis < 0 else axis


def pool_attributes(op, given, sizes):
    if given.get("storage_order"):
        raise LeftOut("storage_order: indices count row by row here")
    kernel = list(given["kernel_shape"])
    attributes = {"kernel": kernel, "ceil_mode": given.get("ceil_mode", 0), **window_attributes(given, sizes, kernel)}
    return {**attributes, "count_include_pad": given.get("count_include_pad", 0)} if op == "AveragePool" else attributes


def resize_attributes(given, inputs, outputs):
    mode, coordinates = given.get("mode", b"nearest").decode(), given.get("coordinate_transformation_mode", b"half_pixel").decode()
    if mode == "cubic":
        raise LeftOut("cubic: only nearest and linear are supported")
    if coordinates not in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        raise LeftOut(coordinates + ": an unsupported coordinate transformation of Resize")
    if inputs[0].shape[:2] != outputs[0].shape[:2]:
        raise LeftOut("images or channels resized: only spatial dimensions are supported")
    scales = inputs[2].tolist() if len(inputs) > 2 and inputs[2] is not None else []
    if not scales:
        scales = [y / x for x, y in zip(inputs[0].shape, outputs[0].shape)]
    if coordinates == "align_corners" and any(abs(scale * x - y) > 1e-4 for scale, x, y in zip(scales, inputs[0].shape, outputs[0].shape)):
        raise LeftOut("align_corners over a fraction of an element: only corners of existing elements are supported")
    rounding = given.get("nearest_mode", b"round_prefer_floor").decode()
    return {"mode": mode, "coordinates": coordinates, "rounding": rounding.removeprefix("round_"), "scales": scales}


def trained_batch(given, inputs, outputs):
    """Adds the statistics that only BatchNormTrain returns; its momentum weights the batch, ONNX's the running values."""
    x, epsilon = inputs[0].astype("float64"), given.get("epsilon", 1e-5)
    others = tuple(i for i in range(x.ndim) if i != 1)
    mean, inverse_std = x.mean(others), (x.var(others) + epsilon) ** -0.5
    outputs += [array.astype(inputs[0].dtype) for array in (mean, inverse_std)]
    return {"axis": 1, "epsilon": epsilon, "momentum": 1 - given.get("momentum", 0.9), "biased": 1}


def lines_of_instances(inputs, outputs):
    """(N, C, d) with d all places of a channel: what InstanceNormalization does before its scale and bias, in f64."""
    x, scale, bias = inputs
    channel_shape = (1, -1) + (1,) * (x.ndim - 2)
    y = (outputs[0].astype("float64") - bias.reshape(channel_shape)) / scale.reshape(channel_shape)
    lines = x.shape[:2] + (-1,)
    outputs[:] = [y.astype(x.dtype).reshape(lines), None, None]
    return [x.reshape(lines), None, None]


def slice_attributes(inputs):
    """One start and step per dimension; sizes are those of the result."""
    shape = inputs[0].shape
    starts, ends = (array.tolist() for array in inputs[1:3])
    axes = inputs[3].tolist() if len(inputs) > 3 and inputs[3] is not None else range(len(starts))
    steps = inputs[4].tolist() if len(inputs) > 4 and inputs[4] is not None else [1] * len(starts)
    first, step = [0] * len(shape), [1] * len(shape)
    for axis, start, end, by in zip(axes, starts, ends, steps):
        walk = range(*slice(start, end, by).indices(shape[axis]))
        first[axis], step[axis] = (walk.start, by) if walk else (0, 1)
    return {"starts": first, "steps": step}


def window_attributes(given, sizes, kernel):
    """Strides, dilations and padding of a window over an image; auto_pad is computed from the image's sizes."""
    dims = len(kernel)
    if dims > 2:
        raise LeftOut("three spatial dimensions: images have one or two")
    strides, dilations = list(given.get("strides", [1] * dims)), list(given.get("dilations", [1] * dims))
    pads, auto = list(given.get("pads", [0] * 2 * dims)), given.get("auto_pad", b"NOTSET").decode()
    if auto.startswith("SAME"):
        total = [max((-(-d // s) - 1) * s + (k - 1) * w + 1 - d, 0) for d, k, s, w in zip(sizes, kernel, strides, dilations)]
        pads = split_padding(total, auto)
    return {"strides": strides, "dilations": dilations, "pads_before": pads[:dims], "pads_after": pads[dims:]}


def split_padding(total, auto):
    """Half of it on either side, an odd element after for SAME_UPPER, else before."""
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return less + more if auto == "SAME_UPPER" else more + less


def transposed_attributes(given, x, w, y):
    """Padding that crops the full result to the actual size, which covers output_padding and output_shape."""
    kernel = w.shape[2:]
    attributes = window_attributes({k: v for k, v in given.items() if k != "auto_pad"}, x.shape[2:], kernel)
    auto = given.get("auto_pad", b"NOTSET").decode()
    if "output_shape" in given or auto.startswith("SAME"):
        strides, dilations = attributes["strides"], attributes["dilations"]
        extra = given.get("output_padding", [0] * len(kernel))
        total = [max(s * (d - 1) + e + (k - 1) * wide + 1 - size, 0) for s, d, e, k, wide, size in
                 zip(strides, x.shape[2:], extra, kernel, dilations, y.shape[2:])]
        pads = split_padding(total, auto)
        attributes["pads_before"], attributes["pads_after"] = pads[:len(kernel)], pads[len(kernel):]
    return attributes


def recurrence(op, given, inputs, outputs):
    """x w r b states, time first; only batches whose sequences all have the full length are supported."""
    if "clip" in given or given.get("input_forget"):
        raise LeftOut("recurrence with clipped or coupled gates")
    plain = {"LSTM": [b"Sigmoid", b"Tanh", b"Tanh"], "GRU": [b"Sigmoid", b"Tanh"], "RNN": [b"Tanh"]}[op]
    activations = given.get("activations", plain)
    if activations not in (plain, 2 * plain) and not (op == "RNN" and set(activations) == {b"Relu"}):
        raise LeftOut("recurrence with other activations")
    x, w, r, b, lengths, *states = inputs + [None] * ((7 if op == "LSTM" else 6) - len(inputs))
    if lengths is not None and (lengths != x.shape[1 if given.get("layout") else 0]).any():
        raise LeftOut("sequences of several lengths in one batch")
    if len(states) > 2:
        if states[2].any():
            raise LeftOut("LSTM with peepholes")
        states = states[:2]
    if given.get("layout"):  # batch first: (B, T, I), (B, D, H) -> (B, T, D, H)
        x, states = x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in states]
        outputs[:] = [None if y is None else y.transpose((1, 2, 0, 3)) if y.ndim == 4 else y.swapaxes(0, 1) for y in outputs]
    outputs += [None] * ({"LSTM": 5, "GRU": 3, "RNN": 2}[op] - len(outputs))
    return {
        "direction": given.get("direction", b"forward").decode().replace("bidirectional", "both"),
        "activation": "relu" if b"Relu" in activations else "tanh",
        "linear_before_reset": given.get("linear_before_reset", 0),
    }, [x, w, r, b, *states]


def lowered(op, given, inputs, outputs):
    """Attributes as in ops.def, and the remaining operands. May remove operands and change the layout of results."""
    rank = inputs[0].ndim
    if op.startswith("Reduce"):
        axes = given.get("axes")
        if axes is None and len(inputs) > 1 and inputs[1] is not None:
            axes = inputs[1].tolist()
            if not axes and given.get("noop_with_empty_axes"):
                raise LeftOut("it reduces nothing: the core makes no node of it")
        axes = sorted(resolved(a, rank) for a in axes) if axes else list(range(rank))
        return {"axes": axes, "keepdims": given.get("keepdims", 1)}, inputs[:1]
    if op in ("ArgMax", "ArgMin"):
        if given.get("select_last_index"):
            raise LeftOut("select_last_index: ties go to the first index here")
        return {"axis": resolved(given.get("axis", 0), rank), "keepdims": given.get("keepdims", 1)}, inputs
    if op == "Flatten":
        return {"axis": resolved(given.get("axis", 1), rank)}, inputs
    if op == "Concat":
        return {"axis": resolved(given["axis"], rank)}, inputs
    if op == "Split":
        return {"axis": resolved(given.get("axis", 0), rank)}, inputs[:1]
    if op in ("Gather", "GatherElements"):
        return {"axis": resolved(given.get("axis", 0), rank)}, inputs
    if op == "ScatterElements":
        return {"axis": resolved(given.get("axis", 0), rank), "reduction": given.get("reduction", b"none").decode()}, inputs
    if op == "Slice":
        return slice_attributes(inputs), inputs[:1]
    if op == "Pad":
        widths = inputs[1].tolist()
        if min(widths, default=0) < 0:
            raise LeftOut("it takes elements away: the core makes a Slice of it")
        value = inputs[2].item() if len(inputs) > 2 and inputs[2] is not None else 0
        return {"mode": given.get("mode", b"constant").decode(), "value": value, "before": widths[:rank]}, inputs[:1]
    if op == "OneHot":
        # ONNX allows indices of any dtype, with integer values
        off, on = inputs[2].tolist()
        axis = resolved(given.get("axis", -1), rank + 1)
        return {"axis": axis, "off": off, "on": on}, [inputs[0].astype("int64")]
    if op in ("GlobalAveragePool", "GlobalMaxPool"):
        return {"axes": list(range(2, rank)), "keepdims": 1}, inputs
    if op in ("MaxPool", "AveragePool"):
        return pool_attributes(op, given, inputs[0].shape[2:]), inputs
    if op == "Resize":
        return resize_attributes(given, inputs, outputs), inputs[:1]
    if op in ("LSTM", "GRU", "RNN"):
        return recurrence(op, given, inputs, outputs)
    if op in ("Softmax", "LogSoftmax"):
        return {"axis": resolved(given.get("axis", -1), rank)}, inputs
    if op == "Transpose":
        return {"axes": list(given.get("perm", reversed(range(rank))))}, inputs
    if op in ("Reshape", "Expand"):
        return {}, inputs[:1]
    if op == "Gemm":
        return {
            "trans_a": given.get("transA", 0),
            "trans_b": given.get("transB", 0),
            "alpha": given.get("alpha", 1.0),
            "beta": given.get("beta", 1.0),
        }, inputs + [None] * (3 - len(inputs))
    if op == "Conv":
        attributes = window_attributes(given, inputs[0].shape[2:], inputs[1].shape[2:])
        return {"groups": given.get("group", 1), **attributes}, inputs + [None] * (3 - len(inputs))
    if op == "ConvTranspose":
        attributes = transposed_attributes(given, inputs[0], inputs[1], outputs[0])
        return {"groups": given.get("group", 1), **attributes}, inputs + [None] * (3 - len(inputs))
    if op == "TopK":
        return {"axis": resolved(given.get("axis", -1), rank), "k": inputs[1].item(), "largest": given.get("largest", 1),
                "sorted": given.get("sorted", 1)}, inputs[:1]
    if op == "CumSum":
        return {"axis": resolved(inputs[1].item(), rank), "exclusive": given.get("exclusive", 0),
                "reverse": given.get("reverse", 0)}, inputs[:1]
    if op == "BatchNormalization":
        if given.get("training_mode"):
            return trained_batch(given, inputs, outputs), inputs
        return {"axis": 1, "epsilon": given.get("epsilon", 1e-5)}, inputs
    if op == "LayerNormalization":
        outputs += [None] * (3 - len(outputs))
        return {"axis": resolved(given.get("axis", -1), rank), "epsilon": given.get("epsilon", 1e-5)}, inputs + [None] * (3 - len(inputs))
    if op == "InstanceNormalization":
        return {"axis": 2, "epsilon": given.get("epsilon", 1e-5)}, lines_of_instances(inputs, outputs)
    if op == "LRN":
        defaults = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
        return {"size": given["size"], **{name: given.get(name, value) for name, value in defaults.items()}}, inputs
    if op in ("Max", "Min"):
        if len(inputs) != 2:
            raise LeftOut("not two operands: the core makes a chain of them")
        return {}, inputs
    if op == "Pow" and inputs[0].dtype != inputs[1].dtype:
        raise LeftOut("operands of two dtypes: the core casts")
    if op == "Clip":
        bounds = dict(zip(("low", "high"), inputs[1:]))
        return {name: bound.item() for name, bound in bounds.items() if bound is not None}, inputs[:1]
    if op == "IsInf":
        if not given.get("detect_negative", 1) or not given.get("detect_positive", 1):
            raise LeftOut("infinities of one sign: both count here")
        return {}, inputs
    if op in ("LeakyRelu", "Elu"):
        return {"alpha": given.get("alpha", 0.01 if op == "LeakyRelu" else 1.0)}, inputs
    if op == "Gelu":
        return {"approximate_tanh": 1 if given.get("approximate", b"none") == b"tanh" else 0}, inputs
    if op == "Cast":
        return {"to": DTYPES.get(str(outputs[0].dtype), "?")}, inputs
    if op == "SoftmaxCrossEntropyLoss":
        attributes = {"reduction": given.get("reduction", b"mean").decode()}
        if "ignore_index" in given:
            attributes["ignore_index"] = given["ignore_index"]
        return attributes, inputs + [None] * (3 - len(inputs))
    if given:
        raise LeftOut("attributes that ops.def does not have: " + ", ".join(sorted(given)))
    return {}, inputs


def packed(array):
    if array is None:
        return None
    little = array.astype(array.dtype.newbyteorder("<"))
    return {"dtype": DTYPES[str(array.dtype)], "shape": list(array.shape), "data": little.tobytes().hex()}


def convert(folder, ops, onnx, numpy_helper):
    model = onnx.load(os.path.join(folder, "model.onnx"))
    nodes = model.graph.node
    if len(nodes) != 1:
        raise LeftOut("several nodes")
    node = nodes[0]
    op = COMPOSED.get(node.op_type, node.op_type)
    if node.domain not in ("", "ai.onnx") or op not in ops:
        raise LeftOut("operator not in ops.def")

    def tensor(path):
        with open(path, "rb") as file:
            proto = onnx.TensorProto.FromString(file.read())
        if proto.data_type in (onnx.TensorProto.BFLOAT16, onnx.TensorProto.STRING):
            raise LeftOut("dtype that the op does not serve here")
        return numpy_helper.to_array(proto)

    # The files store bf16 as 16 bits; the model has the dtype.
    bf16 = {value.name for value in [*model.graph.input, *model.graph.output]
            if value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16}

    data = os.path.join(folder, "test_data_set_0")

    def tensors(names, kind):
        """One array per name of the node; files exist only for names that are not empty."""
        arrays, number = [], 0
        for name in names:
            if not name:
                arrays.append(None)
                continue
            array = tensor(os.path.join(data, f"{kind}_{number}.pb"))
            arrays.append(array.view("V2") if name in bf16 and array.dtype == "uint16" else array)
            number += 1
        return arrays

    inputs, outputs = tensors(node.input, "input"), tensors(node.output, "output")
    dtype = DTYPES.get(str(inputs[0].dtype))
    wrong = [a for a in inputs + outputs if a is not None and str(a.dtype) not in DTYPES]
    if dtype not in ops[op] or wrong:
        raise LeftOut("dtype that the op does not serve here")
    attributes, inputs = lowered(node.op_type, attributes_of(node, onnx.helper), inputs, outputs)
    if op == "BatchNormalization" and "momentum" in attributes:
        op = "BatchNormTrain"
    if op in ("SoftmaxCrossEntropyLoss", "MaxPool"):
        outputs += [None] * (2 - len(outputs))
    return {
        "name": os.path.basename(folder)[len("test_"):],
        "op": op,
        "attributes": attributes,
        "inputs": [packed(a) for a in inputs],
        "outputs": [packed(a) for a in outputs],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", required=True, help="plugins/abi/tenon/ops.def")
    parser.add_argument("--data", default="", help="folder of node tests; default: Debian's")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    if os.path.exists(arguments.out):
        os.remove(arguments.out)
    try:
        import onnx
        import onnx.helper
        from onnx import numpy_helper
    except ImportError as error:
        skip(f"{error}; tools/setup installs python3-onnx")
    root = arguments.data or next((d for d in DATA if os.path.isdir(d)), "")
    if not os.path.isdir(root):
        skip("no ONNX node tests in " + " or ".join(DATA) + "; tools/setup installs libonnx-testdata")

    ops = listed_ops(arguments.ops)
    vectors, left_out = [], {}
    for name in sorted(os.listdir(root)):
        try:
            vectors.append(convert(os.path.join(root, name), ops, onnx, numpy_helper))
        except LeftOut as reason:
            left_out[str(reason)] = left_out.get(str(reason), 0) + 1
    with open(arguments.out + ".part", "w", encoding="utf-8") as file:
        json.dump({"vectors": vectors, "left_out": left_out}, file)
    os.replace(arguments.out + ".part", arguments.out)
    print(f"{len(vectors)} vectors of {len({v['op'] for v in vectors})} operators in {arguments.out}")
    for reason, count in sorted(left_out.items(), key=lambda item: -item[1]):
        print(f"  {count} left out: {reason}")


if __name__ == "__main__":
    main()
