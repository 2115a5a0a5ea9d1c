#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes models from PyTorch and Keras to ONNX, trains them on Tenon, and takes them back: each stage agrees with them or ONNX Runtime.

Usage: round_trip.py --tenon build/release/bin/tenon [--device NAME] [--filter GLOB]

    PyTorch -> ONNX          Tenon predicts what ONNX Runtime does
    five steps of training   outputs and parameters are those of PyTorch after the same steps
    Tenon -> ONNX            ONNX Runtime predicts what Tenon does, and PyTorch

and the same for Keras, whose exporter turns batch normalisation into arithmetic with fixed statistics and is not asked for it.

The models have random weights of a fixed seed. Needs these packages from PyPI (exit code 77: one of them is missing):

    torch onnx onnxscript onnxruntime keras numpy
"""
import contextlib
import fnmatch
import io
import os
import pathlib
import sys
import tempfile
import warnings

os.environ["KERAS_BACKEND"] = "torch"
try:
    import agreement
    import keras
    import numpy as np
    import onnxruntime
    import onnxscript  # noqa: F401  used by torch.onnx
    import torch
except ImportError as error:
    print(f"skipped: {error}; pip install torch onnx onnxscript onnxruntime keras numpy")
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


def keras_mlp():
    layers = keras.layers
    return keras.Sequential([keras.Input((12,)), layers.Dense(16, activation="tanh"), layers.Dense(16, activation="gelu"), layers.Dense(CLASSES)])


def keras_convnet():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((8, 8, 3)), layers.Conv2D(8, 3, padding="same", activation="swish"), layers.AveragePooling2D(2),
        layers.SeparableConv2D(8, 3, activation="gelu"), layers.GlobalAveragePooling2D(), layers.Dense(CLASSES)])


class TorchModel:
    """A module. The epsilon of Adam keeps gradients that are 0 but for rounding, such as those of the biases of keys, from becoming steps."""
    optimizers = {"sgd": ("{name: sgd, learning_rate: 0.1, momentum: 0.9}", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
                  "adam": ("{name: adam, learning_rate: 0.01, epsilon: 1e-3}", lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-3))}

    def __init__(self, build):
        torch.manual_seed(1)
        self.module = build().eval()
        randomise(self.module.state_dict().values())

    def export(self, x, path, exporter):
        export(self.module, torch.from_numpy(x), path, exporter)

    def train(self, optimizer, x, y):
        train_torch(self.module, optimizer, x, y)

    def predict(self, x):
        with torch.no_grad():
            return self.module(torch.from_numpy(x)).numpy()

    def differences(self, weights):
        """Of parameters by their names."""
        state = self.module.state_dict()
        return [agreement.difference(state[key].numpy(), weights[key])
                for key in state if key in weights and tuple(state[key].shape) == weights[key].shape]


class KerasModel:
    """A Keras model. Keras adds the epsilon of Adam to another denominator than PyTorch and Tenon: it is small enough not to matter."""
    optimizers = {"sgd": ("{name: sgd, learning_rate: 0.1, momentum: 0.9}", lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
                  "adam": ("{name: adam, learning_rate: 0.01, epsilon: 1e-10}", lambda: keras.optimizers.Adam(0.01, epsilon=1e-10))}

    def __init__(self, build):
        keras.utils.set_random_seed(1)
        self.model = build()
        randomise(weight.value for weight in self.model.weights)

    def export(self, x, path, _):
        self.model(x)  # a model is exported once it has run
        with quiet():
            self.model.export(path, format="onnx", verbose=False)

    def train(self, optimizer, x, y):
        self.model.compile(optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            self.model.train_on_batch(x[rows], y[rows])

    def predict(self, x):
        return self.model.predict(x, verbose=0)

    def differences(self, weights):
        """Of each weight from the nearest one of the file, which has other names and the axes of ONNX."""
        def difference(array):
            layouts = [array] + [array.transpose(axes) for axes in ((3, 2, 0, 1), (2, 3, 0, 1)) if array.ndim == 4]
            return min((agreement.difference(layout, weights[name].reshape(layout.shape)) for layout in layouts for name in weights
                        if weights[name].size == array.size), default=float("inf"))
        return [difference(np.asarray(weight)) for weight in self.model.get_weights()]


# framework, how to make it, its samples, exporters
MODELS = {"mlp": (TorchModel, mlp, floats(12), ("torch script", "torch export")),
          "convnet": (TorchModel, convnet, floats(3, 8, 8), ("torch script", "torch export")),
          "encoder": (TorchModel, Encoder, tokens, ("torch script", "torch export")),
          "keras mlp": (KerasModel, keras_mlp, floats(12), ("keras",)),
          "keras convnet": (KerasModel, keras_convnet, floats(8, 8, 3), ("keras",))}


def randomise(values):
    """Gives tensors that are equal at first different values: PyTorch's older exporter makes one initializer of them."""
    with torch.no_grad():
        for value in values:
            if value.is_floating_point():
                value += torch.empty_like(value).uniform_(0, 0.1)


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def export(module, x, path, exporter):
    """Writes the module, with its batch norms as nodes of their own, which exporters fold into convolutions unless told not to."""
    options = {"input_names": ["x"], "output_names": ["y"]}
    with quiet():
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
    framework, build, inputs, _ = MODELS[name]
    yaml, optimizer = framework.optimizers[optimizer_name]
    model = framework(build)
    random = np.random.default_rng(1)
    x, y, test = inputs(random, STEPS * BATCH), random.integers(0, CLASSES, STEPS * BATCH), inputs(random, 3)
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=test, y_test=y[:3])
    try:
        model.export(x[:2], str(folder / "first.onnx"), exporter)
    except Exception as error:  # of many kinds
        print(f"-     {name:13} {exporter:13} {optimizer_name:5} not exported: {type(error).__name__}: {error}", flush=True)
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
        x_name = agreement.session(folder / "first.onnx").get_inputs()[0].name
        differences["imported"] = checked(agreement.compare(arguments, folder / "first.onnx", [{x_name: test}]))
        agreement.tenon(arguments, "train", folder / "train.yaml")
        agreement.tenon(arguments, "export", folder / "run", "--onnx", folder / "second.onnx", "--check")
        agreement.tenon(arguments, "weights", "export", folder / "train.yaml", folder / "weights.npz", "--checkpoint", folder / "run")
        model.train(optimizer, x, y)
        session = agreement.session(folder / "second.onnx")
        x_name = session.get_inputs()[0].name
        differences["trained"] = agreement.difference(model.predict(test), session.run(None, {x_name: test})[0])
        weights = np.load(folder / "weights.npz")
        of_weights = model.differences(weights)
        differences[f"{len(of_weights)} of {len(weights.files)} parameters"] = max(of_weights)
        differences["exported"] = checked(agreement.compare(arguments, folder / "second.onnx", [{x_name: test}]))
        error = ""
    except RuntimeError as failure:
        error = str(failure)
    passed = not error and max(differences.values()) <= TOLERANCE
    text = ", ".join(f"{what} {value:.1e}" for what, value in differences.items())
    print(f"{'pass' if passed else 'FAIL'}  {name:13} {exporter:13} {optimizer_name:5} {text}", *([error] if error else []), sep="\n      ",
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
        for exporter in MODELS[name][-1]:
            for optimizer in MODELS[name][0].optimizers:
                if fnmatch.fnmatch(f"{exporter}/{name}/{optimizer}", arguments.filter):
                    with tempfile.TemporaryDirectory() as folder:
                        results.append(run_case(arguments, name, exporter, optimizer, pathlib.Path(folder)))
    agreement.finish(results, f"PyTorch {torch.__version__}, Keras {keras.__version__} and ONNX Runtime {onnxruntime.__version__} to {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
