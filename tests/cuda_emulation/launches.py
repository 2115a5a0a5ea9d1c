#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launches.py TENON PLUGIN SOURCE [--long]: what a training step, or the prediction of a batch, launches on the emulated GPU, by net. A kernel,
or a call of a vendor library, counts as one; the limits are what it takes today, so that a change that adds launches is noticed. Copies and
waits include those of batches that are read ahead, so their numbers differ by 1 from run to run."""
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
data: {source: random, shape: [16, 64], classes: 10, train_count: 40, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
batch_size: 4
"""
RECURRENT = """
model:
  name: recurrent
  input: {shape: [16, 12]}
  layers:
    - lstm: {units: 32, bidirectional: true, return_sequences: true}
    - gru: {units: 32}
    - dense: {units: 10}
data: {source: random, shape: [16, 12], classes: 10, train_count: 40, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
batch_size: 4
"""
MLP = """
model:
  name: mlp
  input: {shape: [64]}
  layers:
    - dense: {units: 32, activation: relu}
    - dense: {units: 16}
data: {source: random, shape: [64], classes: 16, train_count: 40, test_count: 4}
loss: {name: sparse_categorical_crossentropy, from_logits: true}
optimizer: {name: sgd, learning_rate: 0.01}
batch_size: 16
precision: mixed_bfloat16
"""
BY_LIBRARY = ("data.train_count=80", "backends.options.cuda.products=library")
FP8 = ("backends.options.cuda.fp8=all", *BY_LIBRARY)
STEP_BY_STEP = ("backends.options.cuda.recurrent=library",)
SMALL_IMAGES = ("model.input.shape=[3,32,32]", "data.shape=[3,32,32]", "batch_size=2")
# net: file or text, kernels and library calls of a step, settings
NETS = {
    "mnist_mlp": ("models/mnist_mlp/train.yaml", 8, 0, ("data.source=digits", "batch_size=10")),
    "encoder": (ENCODER, 25, 0, ()),
    "mlp_by_library": (MLP, 15, 5, BY_LIBRARY),
    "mlp_fp8": (MLP, 30, 5, FP8),  # 3 more for each product: 2 that quantise, 1 that looks for infinities
    "recurrent": (RECURRENT, 21, 9, ()),  # 16 time steps by one kernel a layer, and by one a gradient
    "recurrent_step_by_step": (RECURRENT, 81, 69, STEP_BY_STEP),
}
# The same of the prediction of a batch of 4. The encoder block takes 8 of them; the layer after it is one, and the softmax of predict. The
# recurrent layers are two each: a product with the weights of their inputs, and all time steps.
PREDICTIONS = {
    "encoder": (ENCODER, 10, 0, ()),
    "mlp_by_library": (MLP, 4, 2, BY_LIBRARY),
    "mlp_fp8": (MLP, 10, 2, FP8),
    "recurrent": (RECURRENT, 6, 2, ()),
    "recurrent_step_by_step": (RECURRENT, 36, 32, STEP_BY_STEP),
}
LONG_NETS = {"resnet_50": ("models/bench/resnet_50.yaml", 133, 161, SMALL_IMAGES)}


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


def train(arguments, file, steps, settings, folder):
    return run(arguments, "train", file, ("data.train_count=40", "data.test_count=2", "epochs=1", f"steps_per_epoch={steps}", *settings), folder)


def of_step(arguments, file, settings, folder):
    few, many = 2, 4
    first, last = (train(arguments, file, steps, settings, folder) for steps in (few, many))
    return {kind: (last[kind] - first[kind]) / (many - few) for kind in first}


def of_prediction(arguments, file, settings, folder):
    settings = (*settings, "batch_size=4", f"checkpoint.directory={tempfile.mkdtemp(dir=folder)}")
    train(arguments, file, 1, settings, folder)
    first, last = (run(arguments, "predict", file, (*settings, "data.test_count=8"), folder, "--count", str(count)) for count in (4, 8))
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
            for net, (file, kernels, library_calls, settings) in nets.items():
                if file.startswith("\n"):
                    (folder / f"{net}.yaml").write_text(file)
                    file = folder / f"{net}.yaml"
                else:
                    file = pathlib.Path(arguments[2]) / file
                found = measure(arguments, file, settings, folder)
                right = 0 < found["kernels"] <= kernels and found["library_calls"] <= library_calls
                failures += not right
                print(f"{net}: {'ok' if right else 'FAILED'}: {what} has {found['kernels']:g} kernels, {found['library_calls']:g} library calls and "
                      f"{found['copies']:g} copies, and the host waits {found['waits']:g} times; expected at most {kernels} kernels and {library_calls} library calls")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
