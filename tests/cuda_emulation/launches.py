#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launches.py TENON PLUGIN SOURCE [--long]: what a training step, or the prediction of a batch, launches and copies on the emulated GPU, and how
often the host waits for it, by net. A kernel, or a call of a vendor library, counts as one; the limits are what it takes today, so that a change
that adds to it is noticed."""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

ENCODER = """
model:
  name: encoder
  input: {shape: [16, 64]}
  layers:
    - residual: {body: [layer_norm, attention: {heads: 4}]}
    - residual: {body: [layer_norm, dense: {units: 256, activation: gelu}, dense: {units: 64}]}
    - flatten
    - dense: {units: 10}
data: {source: random, shape: [16, 64], classes: 10, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
"""
RECURRENT = """
model:
  name: recurrent
  input: {shape: [16, 12]}
  layers:
    - lstm: {units: 32, bidirectional: true, return_sequences: true}
    - gru: {units: 32}
    - dense: {units: 10}
data: {source: random, shape: [16, 12], classes: 10, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
"""
LSTM_256 = """
model:
  name: lstm_256
  input: {shape: [16, 12]}
  layers:
    - lstm: {units: 256}
    - dense: {units: 10}
data: {source: random, shape: [16, 12], classes: 10, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
"""
MLP = """
model:
  name: mlp
  input: {shape: [64]}
  layers:
    - dense: {units: 32, activation: relu}
    - dense: {units: 16}
data: {source: random, shape: [64], classes: 16, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
precision: mixed_bfloat16
"""
BY_LIBRARY = ("backends.options.cuda.products=library",)
FP8 = ("backends.options.cuda.fp8=all", *BY_LIBRARY)
STEP_BY_STEP = ("backends.options.cuda.recurrent=library",)
COOPERATIVE = ("backends.options.cuda.recurrent=cooperative",)
SMALL_IMAGES = ("model.input.shape=[3,32,32]", "data.shape=[3,32,32]")
# Its file or text, the size of a batch, and the limits
Net = collections.namedtuple("Net", "file batch kernels library_calls copies waits settings", defaults=((),))
# The copies of a step are the batch's inputs and labels, and the step's scalars before and after it; the waits are for the batch and for the step.
NETS = {
    "mnist_mlp": Net("models/mnist_mlp/train.yaml", 10, 8, 0, 4, 2, ("data.source=digits",)),
    "encoder": Net(ENCODER, 4, 25, 0, 4, 2),
    "mlp_by_library": Net(MLP, 16, 15, 5, 4, 2, BY_LIBRARY),
    "mlp_fp8": Net(MLP, 16, 30, 5, 4, 2, FP8),  # 3 more for each product: 2 that quantise, 1 that looks for infinities
    "recurrent": Net(RECURRENT, 4, 21, 9, 4, 2),  # 16 time steps by one kernel a layer, and by one a gradient
    "recurrent_step_by_step": Net(RECURRENT, 4, 81, 69, 4, 2, STEP_BY_STEP),
    "lstm_256": Net(LSTM_256, 4, 11, 4, 5, 2, COOPERATIVE),  # by kernels whose blocks share the weights; a copy more than the nets above, by steps too
    "lstm_256_step_by_step": Net(LSTM_256, 4, 41, 34, 5, 2),  # the default, as one block does not have the weights
}
# The same of the prediction of a batch. The encoder block takes 8 of the kernels; the layer after it is one, and the softmax of predict. The
# recurrent layers are two each: a product with the weights of their inputs, and all time steps. The copies are the inputs and the results.
PREDICTIONS = {
    "encoder": Net(ENCODER, 4, 10, 0, 2, 2),
    "mlp_by_library": Net(MLP, 4, 4, 2, 2, 2, BY_LIBRARY),
    "mlp_fp8": Net(MLP, 4, 10, 2, 2, 2, FP8),
    "recurrent": Net(RECURRENT, 4, 6, 2, 2, 2),
    "recurrent_step_by_step": Net(RECURRENT, 4, 36, 32, 2, 2, STEP_BY_STEP),
    "lstm_256": Net(LSTM_256, 4, 4, 1, 2, 2, COOPERATIVE),
    "lstm_256_step_by_step": Net(LSTM_256, 4, 19, 16, 2, 2),
}
# The fifth copy is a fill, by the gradient of max pooling.
LONG_NETS = {"resnet_50": Net("models/bench/resnet_50.yaml", 2, 131, 161, 5, 2, SMALL_IMAGES)}


def run(arguments, verb, file, settings, folder, *more):
    """What has run at the end of `tenon VERB FILE`."""
    tenon, plugin, _ = arguments
    command = [tenon, verb, file, "--plugin", plugin, "--device", "cuda:0", *more]
    for setting in settings:
        command += ["--set", setting]
    written = folder / "counts"
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"TENON_CUDA_EMULATION_COUNTS": str(written)})
    words = written.read_text().split()
    return dict(zip(words[::2], map(int, words[1::2])))


def train(arguments, file, batch, steps, settings, folder):
    # A whole epoch: no batch is read ahead that has no step.
    sizes = (f"batch_size={batch}", f"data.train_count={batch * steps}", "data.test_count=2", "epochs=1")
    return run(arguments, "train", file, (*sizes, *settings), folder)


def of_step(arguments, file, net, folder):
    few, many = 2, 4
    first, last = (train(arguments, file, net.batch, steps, net.settings, folder) for steps in (few, many))
    return {kind: (last[kind] - first[kind]) / (many - few) for kind in first}


def of_prediction(arguments, file, net, folder):
    settings = (*net.settings, f"checkpoint.directory={tempfile.mkdtemp(dir=folder)}")
    train(arguments, file, net.batch, 1, settings, folder)
    few, many = net.batch, 2 * net.batch
    settings = (*settings, f"batch_size={net.batch}", f"data.test_count={many}")
    first, last = (run(arguments, "predict", file, settings, folder, "--count", str(count)) for count in (few, many))
    return {kind: last[kind] - first[kind] for kind in first}


def main():
    arguments = [word for word in sys.argv[1:] if word != "--long"]
    if len(arguments) != 3:
        sys.exit(f"expected 3 arguments, got {len(arguments)}: {__doc__.split(':')[0]}")
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        judged = [("a step", of_step, LONG_NETS if "--long" in sys.argv else NETS)]
        if "--long" not in sys.argv:
            judged.append(("a prediction", of_prediction, PREDICTIONS))
        for what, measure, nets in judged:
            for net_name, net in nets.items():
                file = pathlib.Path(arguments[2]) / net.file
                if net.file.startswith("\n"):
                    file = folder / f"{net_name}.yaml"
                    file.write_text(net.file)
                found = measure(arguments, file, net, folder)
                right = found["kernels"] > 0 and all(found[kind] <= getattr(net, kind) for kind in found)
                failures += not right
                print(f"{net_name}: {'ok' if right else 'FAILED'}: {what} has {found['kernels']:g} kernels, {found['library_calls']:g} library calls and "
                      f"{found['copies']:g} copies, and the host waits {found['waits']:g} times; expected at most {net.kernels} kernels, "
                      f"{net.library_calls} library calls, {net.copies} copies and {net.waits} waits")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
