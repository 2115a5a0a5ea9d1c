#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a net of PyTorch on Tenon and on PyTorch: the same accuracy from the same weights and batches, and the time of both.

Usage: fine_tuning.py --tenon build/release/bin/tenon [--data DIR] [--device NAME] [--filter GLOB]

torchvision's resnet18 learns handwritten digits (DIR/mnist) in an epoch on PyTorch, gets a new head and is exported to ONNX. A part of it
then learns clothes (DIR/fashion-mnist), on Tenon from a train.yaml and on PyTorch, in turns and with 2 threads each:

    head         the last layer; all others are frozen
    last block   the last layer and the block of layers before it
    all          everything

The test fails if Tenon's accuracy is more than 1.5 points below PyTorch's. Times are printed: the median of all epochs but the first of a
run, in which programs are compiled. Exit code 77: the data is missing, or one of these packages from PyPI:

    torch torchvision onnx onnxscript onnxruntime numpy
"""
import fnmatch
import gzip
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

try:
    import numpy as np
    import torch
    import torchvision

    import agreement
    import round_trip
except ImportError as error:
    print(f"skipped: {error}; pip install torch torchvision onnx onnxscript onnxruntime numpy")
    sys.exit(77)

POINTS = 1.5
THREADS, BATCH, TRAINING, TEST, CLASSES = 2, 64, 8192, 4096, 10
RATE, EPOCHS, TURNS = 0.001, 3, 2
# The globs of a case name what learns.
CASES = {"head": ["fc.*"], "last block": ["layer4.*", "fc.*"], "all": ["*"]}


def read_images(folder):
    """(x_train, y_train, x_test, y_test): u8 images (n, 3, 28, 28), whose channels are equal, and i64 labels."""
    arrays = []
    for part, count in (("train", TRAINING), ("t10k", TEST)):
        images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())
        images = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 28, 28)[:count]
        arrays += [np.repeat(images, 3, axis=1), np.frombuffer(labels, np.uint8, offset=8)[:count].astype(np.int64)]
    return arrays


def scaled(x):
    return torch.from_numpy(x).float() / 255


def train(net, x, y, epochs):
    """Trains in the order of the data. Returns the seconds of each epoch."""
    optimizer = torch.optim.Adam([value for value in net.parameters() if value.requires_grad], lr=RATE)
    seconds = []
    for _ in range(epochs):
        start = time.perf_counter()
        for first in range(0, len(x), BATCH):
            optimizer.zero_grad()
            rows = slice(first, first + BATCH)
            torch.nn.functional.cross_entropy(net(scaled(x[rows])), torch.from_numpy(y[rows])).backward()
            optimizer.step()
        seconds.append(time.perf_counter() - start)
    return seconds


def accuracy_of(net, x, y):
    net.eval()
    with torch.no_grad():
        classes = [net(scaled(x[first:first + BATCH])).argmax(1).numpy() for first in range(0, len(x), BATCH)]
    return float(np.mean(np.concatenate(classes) == y))


def freeze(net, learns):
    """Leaves gradients to the parameters that these globs name; batch norms that do not learn keep their statistics."""
    for name, value in net.named_parameters():
        value.requires_grad_(any(fnmatch.fnmatch(name, glob) for glob in learns))
    for part in net.modules():
        part.training = any(value.requires_grad for value in part.parameters(recurse=False))


def pretrained(digits):
    """A net that has learnt digits, with a new head."""
    torch.manual_seed(1)
    net = torchvision.models.resnet18(num_classes=CLASSES)
    net.train()
    train(net, *digits[:2], 1)
    print(f"resnet18, {TRAINING} digits, accuracy {accuracy_of(net, *digits[2:]):.4f}", flush=True)
    net.fc = torch.nn.Linear(net.fc.in_features, CLASSES)
    return net.eval()


def tune_torch(state, learns, clothes):
    net = torchvision.models.resnet18(num_classes=CLASSES)
    net.load_state_dict(state)
    freeze(net, learns)
    seconds = train(net, *clothes[:2], EPOCHS)
    return accuracy_of(net, *clothes[2:]), seconds


def tune_tenon(arguments, learns, folder):
    (folder / "train.yaml").write_text(f"""model: {{onnx: net.onnx}}
data: {{source: npz, directory: clothes.npz, normalize: unit}}
loss: {{name: sparse_categorical_crossentropy, from_logits: true}}
optimizer: {{name: adam, learning_rate: {RATE}}}
metrics: [accuracy]
trainable: {json.dumps(learns)}
batch_size: {BATCH}
epochs: {EPOCHS}
shuffle: false
verbose: 0
threads: {THREADS}
""")
    agreement.tenon(arguments, "train", folder / "train.yaml", "--json", folder / "log.jsonl")
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    (folder / "log.jsonl").unlink()
    return rows[-1]["accuracy"], [row["seconds"] for row in rows[:-1]]


def run_case(arguments, name, state, clothes, folder):
    """Prints the row of a case. Returns whether Tenon is as accurate."""
    times = {"Tenon": [], "PyTorch": []}
    for _ in range(TURNS):
        expected, seconds = tune_torch(state, CASES[name], clothes)
        times["PyTorch"] += seconds[1:]
        try:
            accuracy, seconds = tune_tenon(arguments, CASES[name], folder)
        except RuntimeError as error:
            print(f"FAIL  {name:10} {error}", flush=True)
            return False
        times["Tenon"] += seconds[1:]
    passed = accuracy >= expected - POINTS / 100
    print(f"{'pass' if passed else 'FAIL'}  {name:10} accuracy {accuracy:.4f}, PyTorch {expected:.4f}; seconds per epoch: "
          + ", ".join(f"{side} {statistics.median(of):.2f} ({min(of):.2f} to {max(of):.2f})" for side, of in times.items()), flush=True)
    return passed


def main():
    parser = agreement.parser(__doc__.splitlines()[0])
    default = os.environ.get("TENON_TEST_DATA", pathlib.Path(__file__).parents[3] / "shared/data")
    parser.add_argument("--data", type=pathlib.Path, default=default, help="the folder of mnist and fashion-mnist")
    arguments = parser.parse_args()
    try:
        digits, clothes = (read_images(arguments.data / name) for name in ("mnist", "fashion-mnist"))
    except OSError as error:
        print(f"skipped: {error}; --data names the folder of mnist and fashion-mnist")
        sys.exit(77)
    torch.set_num_threads(THREADS)
    net = pretrained(digits)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        np.savez(folder / "clothes.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), clothes)))
        round_trip.export(net, scaled(clothes[0][:2]), str(folder / "net.onnx"), "torch script")
        names = [name for name in CASES if fnmatch.fnmatch(name, arguments.filter)]
        results = [run_case(arguments, name, net.state_dict(), clothes, folder) for name in names]
    agreement.finish(results, f"PyTorch {torch.__version__} to {POINTS} points of accuracy")


if __name__ == "__main__":
    main()
