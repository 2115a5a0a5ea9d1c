#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""heads.py TENON: an ONNX file with two inputs and two outputs learns from a train.yaml, with a loss of its own for each output."""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FLOAT, INT64 = 1, 7  # TensorProto.DataType
SAMPLES = 60

TRAIN = """model: {onnx: net.onnx}
data:
  source: npz
  directory: data
  test_split: 0.2
  inputs: {a: first, b: second}
  targets: {scores: label, value: price}
losses:
  scores: {name: sparse_categorical_crossentropy, weight: 0.5, metrics: [accuracy]}
  value: {name: mse, metrics: [mae]}
optimizer: {name: adam, learning_rate: 0.02}
batch_size: 8
epochs: 30
checkpoint: {directory: run}
"""


def varint(number):
    encoded = b""
    while number > 127:
        encoded, number = encoded + bytes([number & 127 | 128]), number >> 7
    return encoded + bytes([number])


def message(*fields):
    """A protobuf message of (field, integer), (field, text) and (field, bytes)."""
    encoded = b""
    for field, content in fields:
        if isinstance(content, int):
            encoded += varint(field << 3) + varint(content)
        else:
            content = content.encode() if isinstance(content, str) else content
            encoded += varint(field << 3 | 2) + varint(len(content)) + content
    return encoded


def node(op, inputs, output):
    return message(*[(1, name) for name in inputs], (2, output), (4, op))


def value(name, features):
    shape = message((1, message((2, "batch"))), (1, message((1, features))))
    return message((1, name), (2, message((1, message((1, FLOAT), (2, shape))))))


def weight(name, rows, columns):
    numbers = [(i * 7 % 11) / 11 - 0.4 for i in range(rows * columns)]
    return message((1, rows), (1, columns), (2, FLOAT), (8, name), (9, struct.pack(f"<{len(numbers)}f", *numbers)))


def two_heads():
    """h = tanh(a wa + b wb); scores = softmax(h ws) of 3 classes, value = h wv."""
    nodes = [node("MatMul", ["a", "wa"], "ha"), node("MatMul", ["b", "wb"], "hb"), node("Add", ["ha", "hb"], "sum"), node("Tanh", ["sum"], "h"),
             node("MatMul", ["h", "ws"], "logits"), node("Softmax", ["logits"], "scores"), node("MatMul", ["h", "wv"], "value")]
    weights = [weight("wa", 3, 4), weight("wb", 2, 4), weight("ws", 4, 3), weight("wv", 4, 1)]
    graph = message(*[(1, n) for n in nodes], (2, "two heads"), *[(5, w) for w in weights], (11, value("a", 3)), (11, value("b", 2)),
                    (12, value("scores", 3)), (12, value("value", 1)))
    return message((1, 8), (7, graph), (8, message((1, ""), (2, 17))))


def write_npy(path, code, dtype, shape, numbers):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}{code}", *numbers))


def write_data(folder):
    folder.mkdir()
    a = [(i * 13 % 29) / 29 - 0.5 for i in range(3 * SAMPLES)]
    b = [(i * 17 % 31) / 31 - 0.5 for i in range(2 * SAMPLES)]
    write_npy(folder / "first.npy", "f", "<f4", (SAMPLES, 3), a)
    write_npy(folder / "second.npy", "d", "<f8", (SAMPLES, 2), b)
    write_npy(folder / "price.npy", "f", "<f4", f"({SAMPLES},)", [a[3 * i] - b[2 * i] for i in range(SAMPLES)])
    write_npy(folder / "label.npy", "i", "<i4", f"({SAMPLES},)", [2 if a[3 * i + 1] > 0 else int(b[2 * i + 1] > 0) for i in range(SAMPLES)])


def main(tenon):
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "net.onnx").write_bytes(two_heads())
        (folder / "train.yaml").write_text(TRAIN)
        write_data(folder / "data")

        def run(expected, verb, *arguments, has=()):
            command = [tenon, *verb.split(), *arguments]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, check=False)
            missing = [text for text in has if text not in done.stdout]
            if done.returncode != expected or missing:
                failures.append(f"{' '.join(command)}: exit code {done.returncode}, without {missing}\n{done.stdout}")
            return done.stdout

        logs = ["loss", "scores_loss", "value_loss", "scores_accuracy", "value_mae"]
        run(0, "summary train.yaml", has=["Inputs: a, b", "Outputs: scores (3), value (1)",
                                          "Loss of scores: sparse_categorical_crossentropy, weight 0.5", "Memory on "])
        run(0, "explain train.yaml --batch 4", has=["SoftmaxCrossEntropy"])
        run(0, "gradcheck train.yaml", has=["Gradients are right."])
        run(0, "train train.yaml --json run.jsonl", has=[f"{name}: " for name in logs])
        if failures:
            sys.exit("\n".join(failures))
        events = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
        first, last, test = events[0], events[-2], events[-1]
        for log in ["loss", "scores_loss", "value_loss"]:
            if not last[log] < 0.8 * first[log]:
                failures.append(f"{log}: from {first[log]} to {last[log]}")
        if abs(0.5 * test["scores_loss"] + test["value_loss"] - test["loss"]) > 1e-5:
            failures.append(f"the loss of the test set is not the weighted sum: {test}")
        run(0, "eval train.yaml", has=[f"scores_accuracy: {test['scores_accuracy']:.4f}"])
        run(0, "predict train.yaml --count 2", has=["0: scores: class ", "1: value: ", ", expected "])
        run(0, "predict run --count 1 --format json", has=['"output_name":"value"'])
        run(1, "predict run --format csv", has=["--format csv: expected a model with one output, got 2; use json"])
        run(1, "predict run --input data/first.npy", has=["expected a model with one input for samples in files, got 2 inputs"])
        run(0, "export train.yaml --onnx again.onnx --check", has=["Checked: imported again"])
        run(0, "onnx info again.onnx", has=["b f32(batch,2)", "value f32(batch,1)"])
        run(0, "train train.yaml --overwrite --set epochs=1 --set", "losses={value: mse}", has=["value_loss: "])

        run(1, "train train.yaml --set data.inputs.a=none", has=["expected train.npz, none_train.npy or none.npy"])
        run(1, "train train.yaml --set data.inputs.b=none", has=["none.npy"])
        run(1, "train train.yaml --set", "data.inputs={a: first}", has=["expected the inputs a, b, got a; 'b' is missing"])
        run(1, "train train.yaml --set losses.score=mse", has=["expected an output of the model (scores, value), got 'score'; did you mean 'scores'?"])
        run(1, "train train.yaml --set losses.value.target=prize", has=["expected a target 'prize'"])
        run(1, "train train.yaml --set losses=null", has=["key 'loss' is missing"])
        run(1, "train train.yaml --set losses=null --set", "loss={scores: mse}", has=["the name of a loss; losses of outputs by name are the key losses"])
        run(1, "train train.yaml --set losses=null --set loss=mse", has=["the model has the outputs scores, value: expected a loss for at least one"])
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


sys.exit(main(sys.argv[1]))
