#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes models from PyTorch to ONNX, trains them on Tenon, and takes them back: each stage agrees with PyTorch or ONNX Runtime.

Usage: round_trip.py --tenon build/release/bin/tenon [--device NAME] [--filter GLOB]

    PyTorch -> ONNX          Tenon predicts what ONNX Runtime does
    five steps of training   outputs and parameters are those of PyTorch after the same steps
    Tenon -> ONNX            ONNX Runtime predicts what Tenon does, and PyTorch

The models have random weights of a fixed seed. Needs these packages from PyPI (exit code 77: one of them is missing):

    torch onnx onnxscript onnxruntime numpy
"""
import contextlib
import fnmatch
import io
import os
import pathlib
import sys
import tempfile
import warnings

try:
    import agreement
    import numpy as np
    import onnxruntime
    import onnxscript  # noqa: F401  used by torch.onnx
    import torch
except ImportError as error:
    print(f"skipped: {error}; pip install torch onnx onnxscript onnxruntime numpy")
    sys.exit(77)

# Rounding of f32 through the steps, relative to the largest element.
TOLERANCE = 1e-4
STEPS, BATCH, CLASSES, WORDS, LENGTH, WIDTH = 5, 8, 4, 20, 6, 16


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, CLASSES))


def convnet():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.nn.BatchNorm2d(8), torch.nn.SiLU(), torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(8, 8, 3, groups=2), torch.nn.BatchNorm2d(8, momentum=0.3), torch.nn.SiLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(8, CLASSES))


class Encoder(torch.nn.Module):
    """Scores of a text."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.positions = torch.nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0, activation="gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.layers(self.words(x) + self.positions).mean(1))


def floats(*shape):
    return lambda random, count: random.uniform(-1, 1, (count, *shape)).astype(np.float32)


def tokens(random, count):
    return random.integers(0, WORDS, (count, LENGTH))


MODELS = {"mlp": (mlp, floats(12)), "convnet": (convnet, floats(3, 8, 8)), "encoder": (Encoder, tokens)}
# The epsilon of Adam keeps gradients that are 0 but for rounding, such as those of the biases of keys, from becoming steps.
OPTIMIZERS = {"sgd": ("{name: sgd, learning_rate: 0.1, momentum: 0.9}", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
              "adam": ("{name: adam, learning_rate: 0.01, epsilon: 1e-3}", lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-3))}


def randomise(module):
    """Gives tensors that are equal at first different values: PyTorch's older exporter makes one initializer of them."""
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value += torch.empty_like(value).uniform_(0, 0.1)


def export(module, x, path, exporter):
    """Writes the module, with its batch norms as nodes of their own, which exporters fold into convolutions unless told not to."""
    options = {"input_names": ["x"], "output_names": ["y"]}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "torch script":
            torch.onnx.export(module, (x,), path, dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, **options)
        else:
            torch.onnx.export(module, (x,), path, dynamo=True, optimize=False, dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), **options)


def train_torch(module, optimizer, x, y):
    optimizer = optimizer(module.parameters())
    module.train()
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(torch.from_numpy(x[rows])), torch.from_numpy(y[rows])).backward()
        optimizer.step()
    module.eval()


def run_case(arguments, name, exporter, optimizer_name, folder):
    """Prints the row of a case. Returns whether all stages agree."""
    build, inputs = MODELS[name]
    yaml, optimizer = OPTIMIZERS[optimizer_name]
    torch.manual_seed(1)
    module = build().eval()
    randomise(module)
    random = np.random.default_rng(1)
    x, y, test = inputs(random, STEPS * BATCH), random.integers(0, CLASSES, STEPS * BATCH), inputs(random, 3)
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=test, y_test=y[:3])
    try:
        export(module, torch.from_numpy(x[:2]), str(folder / "first.onnx"), exporter)
    except Exception as error:  # of many kinds
        print(f"-     {name:8} {exporter:13} {optimizer_name:5} not exported: {type(error).__name__}: {error}", flush=True)
        return None
    (folder / "train.yaml").write_text(f"""model: {{onnx: first.onnx}}
data: {{source: npz, directory: data.npz, normalize: none}}
loss: {{name: sparse_categorical_crossentropy, from_logits: true}}
optimizer: {yaml}
batch_size: {BATCH}
shuffle: false
verbose: 0
checkpoint: {{directory: run}}
""")
    differences = {}
    try:
        differences["imported"] = checked(agreement.compare(arguments, folder / "first.onnx", [{"x": test}]))
        agreement.tenon(arguments, "train", folder / "train.yaml")
        agreement.tenon(arguments, "export", folder / "run", "--onnx", folder / "second.onnx", "--check")
        agreement.tenon(arguments, "weights", "export", folder / "train.yaml", folder / "weights.npz", "--checkpoint", folder / "run")
        train_torch(module, optimizer, x, y)
        with torch.no_grad():
            expected = module(torch.from_numpy(test)).numpy()
        differences["trained"] = agreement.difference(expected, agreement.session(folder / "second.onnx").run(None, {"x": test})[0])
        state, weights = module.state_dict(), np.load(folder / "weights.npz")
        same = [key for key in state if key in weights and tuple(state[key].shape) == weights[key].shape]
        differences[f"{len(same)} of {len(weights.files)} parameters"] = max(
            agreement.difference(state[key].numpy(), weights[key]) for key in same)
        differences["exported"] = checked(agreement.compare(arguments, folder / "second.onnx", [{"x": test}]))
        error = ""
    except RuntimeError as failure:
        error = str(failure)
    passed = not error and max(differences.values()) <= TOLERANCE
    text = ", ".join(f"{what} {value:.1e}" for what, value in differences.items())
    print(f"{'pass' if passed else 'FAIL'}  {name:8} {exporter:13} {optimizer_name:5} {text}", *([error] if error else []), sep="\n      ",
          flush=True)
    return passed


def checked(result):
    """The difference of agreement.compare."""
    difference, error = result
    if error:
        raise RuntimeError(error)
    return difference


def main():
    arguments = agreement.parser(__doc__.splitlines()[0]).parse_args()
    arguments.tenon = os.path.abspath(arguments.tenon)
    results = []
    for name in MODELS:
        for exporter in ("torch script", "torch export"):
            for optimizer in OPTIMIZERS:
                if fnmatch.fnmatch(f"{exporter}/{name}/{optimizer}", arguments.filter):
                    with tempfile.TemporaryDirectory() as folder:
                        results.append(run_case(arguments, name, exporter, optimizer, pathlib.Path(folder)))
    agreement.finish(results, f"PyTorch {torch.__version__} and ONNX Runtime {onnxruntime.__version__} to {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
