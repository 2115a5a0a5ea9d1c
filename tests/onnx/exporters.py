#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares models that today's exporters write on Tenon with ONNX Runtime, at two batch sizes where the exporter leaves it open.

Usage: exporters.py --tenon build/release/bin/tenon [--models DIR] [--device NAME] [--filter GLOB]

The models have random weights of fixed seeds. Files in DIR are used again; without --models they are in a temporary folder. A failing
export is a row of its own, and no failure of Tenon. Needs these packages from PyPI (exit code 77: one of them is missing):

    torch torchvision onnx onnxscript onnxruntime keras scikit-learn skl2onnx transformers numpy
"""
import collections
import contextlib
import fnmatch
import os
import pathlib
import sys
import tempfile
import warnings

os.environ["KERAS_BACKEND"] = "torch"
sys.path.append(str(pathlib.Path(__file__).parents[2] / "tools/bench/peers"))
try:
    import agreement
    import keras
    import numpy as np
    import onnx
    import onnxruntime
    import onnxscript  # noqa: F401  used by torch.onnx
    import skl2onnx
    import sklearn.datasets
    import sklearn.neural_network
    import torch
    import torchvision
    import transformers
    from torch_models import WithoutCache, take_statistics
except ImportError as error:
    print(f"skipped: {error}; pip install torch torchvision onnx onnxscript onnxruntime keras scikit-learn skl2onnx transformers numpy")
    sys.exit(77)

# Rounding of f32 through up to 200 layers, relative to the largest element of the output.
TOLERANCE = 1e-4
# name, exporter, export(path) and inputs(batch, random), which returns arrays in the order of the model's inputs
Case = collections.namedtuple("Case", "name exporter export inputs")


def images(size, channels_last=False):
    def make(batch, random):
        shape = (batch, size, size, 3) if channels_last else (batch, 3, size, size)
        return [random.uniform(-1, 1, shape).astype(np.float32)]
    return make


def torch_case(name, exporter, build, inputs, names, dynamic_axes, results=("result",)):
    """A module for torch.onnx.export; dynamic_axes names the open axes of each input."""
    def export(path):
        torch.manual_seed(0)
        module = build().eval()
        randomise(module.parameters())
        arguments = tuple(torch.from_numpy(array) for array in inputs(2, np.random.default_rng(0)))
        take_statistics(module, arguments)
        options = {"input_names": list(names), "output_names": list(results), "dynamo": exporter != "torch script"}
        if exporter == "torch newest":
            options["opset_version"] = 23  # the first with Attention, RMSNormalization and RotaryEmbedding
        if options["dynamo"]:
            options["dynamic_shapes"] = torch_shapes(module, [dynamic_axes.get(name, {}) for name in names])
        else:
            options["dynamic_axes"] = dynamic_axes
        torch.onnx.export(module, arguments, path, **options)
    return Case(name, exporter, export, inputs)


def torch_shapes(module, shapes):
    """dynamic_shapes as torch.export expects them: inputs of a variadic parameter are nested."""
    shapes = [{axis: torch.export.Dim.DYNAMIC for axis in axes} for axes in shapes]
    count = getattr(module, "positional", len(shapes))
    return tuple(shapes[:count]) + ((tuple(shapes[count:]),) if count < len(shapes) else ())


def randomise(values):
    """Changes parameters that begin as constants, as training does: a head of zeros would hide all differences."""
    with torch.no_grad():
        for value in values:
            if value.is_floating_point() and value.numel() > 1 and bool((value == value.flatten()[0]).all()):
                value += torch.empty_like(value).uniform_(-0.1, 0.1)


VISION = {"resnet50": 128, "vgg16": 224, "mobilenet_v2": 128, "efficientnet_b0": 128, "vit_b_16": 224, "densenet121": 64,
          "shufflenet_v2_x1_0": 128, "regnet_y_400mf": 128, "convnext_tiny": 128, "swin_t": 128}


def vision(name, size, exporter):
    return torch_case(name, exporter, lambda: torchvision.models.get_model(name, weights=None), images(size), ["x"],
                      {"x": {0: "batch"}})


class WithCache(torch.nn.Module):
    """Logits and the keys and values of each layer, as decoders are exported for generation."""
    positional = 2

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, *past):
        cache = transformers.DynamicCache(list(zip(past[::2], past[1::2])))
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return (result.logits, *(array for layer in result.past_key_values.layers for array in (layer.keys, layer.values)))


LAYERS, HEADS, KEY_HEADS, WIDTH, WORDS = 4, 4, 2, 256, 1000


def bert():
    return transformers.BertModel(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH))


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=WORDS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=256, bos_token_id=None, eos_token_id=None))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS,
        intermediate_size=2 * WIDTH, max_position_embeddings=256))


def tokens(length, past=0, key_heads=0):
    """Tokens and their mask; with a past also keys and values of each layer."""
    def make(batch, random):
        mask = np.ones((batch, past + length), np.int64)
        mask[-1, :2] = 0  # as of a shorter text with padding in front
        cache = [random.uniform(-1, 1, (batch, key_heads, past, WIDTH // HEADS)) for _ in range(2 * LAYERS)] if past else []
        return [random.integers(1, WORDS, (batch, length)), mask, *(part.astype(np.float32) for part in cache)]
    return make


def text(name, build, exporter):
    axes = {0: "batch", 1: "sequence"}
    return torch_case(name, exporter, lambda: WithoutCache(build()), tokens(40), ["input_ids", "attention_mask"],
                      {"input_ids": axes, "attention_mask": axes})


def text_with_cache(name, build, key_heads, exporter):
    parts = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    past = [f"past.{part}" for part in parts]
    axes = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "all"}}
    axes.update({part: {0: "batch", 2: "past"} for part in past})
    return torch_case(f"{name} with cache", exporter, lambda: WithCache(build()), tokens(3, 17, key_heads),
                      ["input_ids", "attention_mask", *past], axes, ["logits", *(f"present.{part}" for part in parts)])


class GreedyDecoder(torch.nn.Module):
    """Appends the likeliest token until it is the last one or there are `limit` of them: the body of the loop computes its condition."""

    def __init__(self):
        super().__init__()
        self.embedding, self.state = torch.nn.Embedding(WORDS, 32), torch.nn.Linear(32, 32)
        self.step, self.logits = torch.nn.Linear(32, 32), torch.nn.Linear(32, WORDS)

    def forward(self, state, limit):
        tokens = torch.zeros(1, dtype=torch.long)
        token = torch.zeros(1, dtype=torch.long)
        count = 0
        while bool(token.sum() % 8 != 7) and count < limit:
            state = torch.tanh(self.step(self.embedding(token)) + self.state(state))
            token = self.logits(state).argmax(-1)
            tokens = torch.cat([tokens, token])
            count += 1
        return tokens, state


def greedy_decoder():
    def inputs(batch, random):  # one sequence of another length for each
        return [random.normal(size=(1, 32)).astype(np.float32), np.array(10 * batch)]

    def export(path):
        torch.manual_seed(1)
        module = torch.jit.script(GreedyDecoder().eval())
        arguments = tuple(torch.from_numpy(array) for array in inputs(2, np.random.default_rng(0)))
        torch.onnx.export(module, arguments, path, input_names=["state", "limit"], output_names=["tokens", "last"], dynamo=False)
    return Case("greedy decoder", "torch script", export, inputs)


def keras_convolutions():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((32, 32, 3)), layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
        layers.SeparableConv2D(32, 3, strides=2, padding="same", activation="swish"), layers.GlobalAveragePooling2D(), layers.Dropout(0.2),
        layers.Dense(10, activation="softmax")])


def keras_recurrent():
    layers = keras.layers
    return keras.Sequential([keras.Input((12, 8)), layers.Bidirectional(layers.LSTM(16, return_sequences=True)), layers.GRU(16),
                             layers.Dense(3)])


def keras_mobilenet():
    return keras.applications.MobileNetV2(weights=None, classifier_activation=None, input_shape=(96, 96, 3))


def keras_case(name, build, inputs):
    def export(path):
        keras.utils.set_random_seed(0)
        model = build()
        randomise(weight.value for weight in model.trainable_weights)
        for layer in model.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.momentum = 0.0
        model(torch.from_numpy(inputs(2, np.random.default_rng(0))[0]), training=True)  # takes the statistics of batch norms
        model.export(path, format="onnx", verbose=False)
    return Case(name, "keras", export, inputs)


def perceptron(name, estimator, make_data):
    def export(path):
        data, target = make_data(n_samples=200, n_features=12, random_state=0)
        data = data.astype(np.float32)
        fitted = estimator(hidden_layer_sizes=(32, 16), max_iter=30, random_state=0).fit(data, target)
        options = {"zipmap": False} if sklearn.base.is_classifier(fitted) else None
        pathlib.Path(path).write_bytes(skl2onnx.to_onnx(fitted, data[:1], options=options).SerializeToString())
    return Case(name, "skl2onnx", export, lambda batch, random: [random.normal(size=(batch, 12)).astype(np.float32)])


def all_cases():
    for exporter in ("torch dynamo", "torch script", "torch newest"):
        for name, size in VISION.items() if exporter != "torch newest" else ():
            yield vision(name, size, exporter)
        yield text("bert", bert, exporter)
        for name, build, key_heads in (("gpt2", gpt2, HEADS), ("llama", llama, KEY_HEADS)):
            yield text(name, build, exporter)
            yield text_with_cache(name, build, key_heads, exporter)
    yield greedy_decoder()
    yield keras_case("convolutions", keras_convolutions, images(32, channels_last=True))
    yield keras_case("recurrent", keras_recurrent, lambda batch, random: [random.uniform(-1, 1, (batch, 12, 8)).astype(np.float32)])
    yield keras_case("MobileNetV2", keras_mobilenet, images(96, channels_last=True))
    yield perceptron("MLPClassifier", sklearn.neural_network.MLPClassifier, sklearn.datasets.make_classification)
    yield perceptron("MLPRegressor", sklearn.neural_network.MLPRegressor, sklearn.datasets.make_regression)


@contextlib.contextmanager
def quiet():
    """Drops warnings and everything that is written meanwhile, by native code too."""
    with warnings.catch_warnings(), open(os.devnull, "wb") as nothing:
        warnings.simplefilter("ignore")
        sys.stdout.flush()
        kept = [os.dup(1), os.dup(2)]
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in enumerate(kept, start=1):
                os.dup2(copy, number)
                os.close(copy)


def make_file(case, folder):
    """The file of a case, or the message of the exporter."""
    path = folder / f"{case.name} {case.exporter}.onnx".replace(" ", "_")
    if path.exists():
        return path
    try:
        with quiet():
            case.export(str(path))
    except Exception as error:  # of many kinds, as frameworks have them
        path.unlink(missing_ok=True)
        return first_line(error)
    return path


def first_line(error):
    return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0]}"


def named_inputs(case, path):
    """Inputs by their batch size: one and three rows if the first axis is open, else the two rows that were exported."""
    values = agreement.session(path).get_inputs()
    batches = [2] if isinstance(values[0].shape[0], int) and len(values[-1].shape) > 0 else [1, 3]
    return {batch: dict(zip((value.name for value in values), case.inputs(batch, np.random.default_rng(batch)))) for batch in batches}


def run_case(arguments, case, folder):
    """Prints the row of a case. Returns whether Tenon agrees; None if there is nothing to compare with."""
    path = make_file(case, folder)
    start = f"{case.name:20} {case.exporter:13}"
    if isinstance(path, str):
        print(f"-     {start} not exported: {path}", flush=True)
        return None
    model = onnx.load(path, load_external_data=False)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    worst, errors, compared = 0.0, [], []
    for batch, inputs in named_inputs(case, path).items():
        try:
            largest, error = agreement.compare(arguments, path, [inputs])
        except Exception as refusal:  # ONNX Runtime has no base class for its errors
            print(f"-     {start} batch {batch} not compared: ONNX Runtime: {first_line(refusal)}", flush=True)
            continue
        compared.append(batch)
        worst = max(worst, largest)
        errors += [error] if error else []
    if not compared:
        return None
    passed = not errors and worst <= TOLERANCE
    print(f"{'pass' if passed else 'FAIL'}  {start} opset {opset}, {len(model.graph.node):4} nodes, "
          f"batch {' and '.join(map(str, compared))}, largest difference {worst:.1e}", *errors, sep="\n      ", flush=True)
    return passed


def main():
    parser = agreement.parser(__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, help="where the files are kept")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.models or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in all_cases():
            if fnmatch.fnmatch(f"{case.exporter}/{case.name}", arguments.filter):
                results.append(run_case(arguments, case, folder))
    agreement.finish(results, f"ONNX Runtime {onnxruntime.__version__} to {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
