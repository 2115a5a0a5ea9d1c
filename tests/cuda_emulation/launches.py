#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launches.py TENON PLUGIN SOURCE [--long]: what a training step launches on the emulated GPU, by net. A kernel, or a call of a vendor library,
counts as one; the limits are what a step takes today, so that a change that adds launches is noticed."""
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
SMALL_IMAGES = ("model.input.shape=[3,32,32]", "data.shape=[3,32,32]", "batch_size=2")
# net: file or text, kernels and library calls of a step, settings
NETS = {
    "mnist_mlp": ("models/mnist_mlp/train.yaml", 11, 8, ("data.source=digits", "batch_size=10")),
    "encoder": (ENCODER, 25, 21, ()),
}
LONG_NETS = {"resnet_50": ("models/bench/resnet_50.yaml", 138, 161, SMALL_IMAGES)}


def counts(arguments, file, steps, settings, folder):
    """What has run at the end of a training of so many steps."""
    tenon, plugin, _ = arguments
    command = [tenon, "train", file, "--plugin", plugin, "--device", "cuda:0", "--set", "data.train_count=40", "--set", "data.test_count=2",
               "--set", "epochs=1", "--set", f"steps_per_epoch={steps}"]
    for setting in settings:
        command += ["--set", setting]
    written = folder / "counts"
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"TENON_CUDA_EMULATION_COUNTS": str(written)})
    words = written.read_text().split()
    return dict(zip(words[::2], map(int, words[1::2])))


def main():
    arguments = [word for word in sys.argv[1:] if word != "--long"]
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for net, (file, kernels, library_calls, settings) in (LONG_NETS if "--long" in sys.argv else NETS).items():
            if file.startswith("\n"):
                (folder / f"{net}.yaml").write_text(file)
                file = folder / f"{net}.yaml"
            else:
                file = pathlib.Path(arguments[2]) / file
            few, many = 2, 4
            first, last = (counts(arguments, file, steps, settings, folder) for steps in (few, many))
            step = {kind: (last[kind] - first[kind]) / (many - few) for kind in first}
            right = 0 < step["kernels"] <= kernels and 0 < step["library_calls"] <= library_calls
            failures += not right
            print(f"{net}: {'ok' if right else 'FAILED'}: a step has {step['kernels']:g} kernels, {step['library_calls']:g} library calls and "
                  f"{step['copies']:g} copies; expected at most {kernels} kernels and {library_calls} library calls")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
