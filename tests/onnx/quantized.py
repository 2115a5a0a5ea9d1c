#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises models with `tenon quantize` and compares the integers of the files on Tenon, ONNX Runtime and OpenVINO.

Usage: quantized.py --tenon build/release/bin/tenon [--model FILE.onnx --data FILE.npy] [--device NAME] [--filter GLOB]
                    [--options "--calibration entropy ..."]

Every quantised activation of a file becomes an output of a copy, which the three runtimes run on the same samples. Runtimes differ by 1
where a quotient is within rounding of a tie: one sums in integers and another in floats, and ONNX Runtime rounds means over images in its own
way. Later nodes carry that on, and nets of random weights amplify it from layer to layer, between ONNX Runtime and OpenVINO as well. A model
passes if the first activation is equal, at most 2 of 100 integers of the first one that differs do so, by 1, and the outputs are at most twice
as far from ONNX Runtime's as OpenVINO's are. The operators that ONNX Runtime and OpenVINO compute with integers are printed, as their optimised
graphs name them.

Without --model: models of torchvision with random weights. Needs the packages of exporters.py and openvino (exit code 77: one is missing).
"""
import collections
import fnmatch
import pathlib
import shlex
import sys
import tempfile

import agreement
import exporters
import numpy as np
import onnx
import onnxruntime
import torchvision

try:
    import openvino
except ImportError as error:
    print(f"skipped: {error}; pip install openvino")
    sys.exit(77)

VISION = {"resnet18": 64, "mobilenet_v2": 64, "squeezenet1_1": 64, "densenet121": 64, "shufflenet_v2_x1_0": 64}
CALIBRATION, COMPARED = 16, 4
TIES = 0.02  # the share of quotients that are near a tie


def make_cases(arguments, folder):
    """Name, file of floats and samples (n, ...) of each model."""
    if arguments.model:
        yield arguments.model.stem, arguments.model, np.load(arguments.data)
        return
    for name, size in VISION.items():
        if not fnmatch.fnmatch(name, arguments.filter):
            continue
        case = exporters.torch_case(name, "torch script", lambda name=name: torchvision.models.get_model(name, weights=None),
                                    exporters.images(size), ["x"], {"x": {0: "batch"}})
        path = folder / f"{name}.onnx"
        case.export(path)
        yield name, path, case.inputs(CALIBRATION, np.random.default_rng(1))[0]


def with_integers(path):
    """A copy of a file whose outputs are the results of QuantizeLinear too, and their names in order."""
    model = onnx.load(path)
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    names = []
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear":
            names.append(node.output[0])
            model.graph.output.append(onnx.helper.make_tensor_value_info(node.output[0], types[node.input[2]], None))
    copy = path.with_name(path.stem + "-integers.onnx")
    onnx.save(model, copy)
    return copy, names


def integer_operators(path):
    """How many operators of each kind ONNX Runtime and OpenVINO compute with integers."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path.with_name(path.stem + "-optimised.onnx"))
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ort = collections.Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)
    compiled = openvino.Core().compile_model(str(path), "CPU")
    ov = collections.Counter()
    for node in compiled.get_runtime_model().get_ops():
        info = node.get_rt_info()
        kind, precision = (str(info[key].astype(str)) if key in info else "" for key in ("layerType", "runtimePrecision"))
        if kind in ("Convolution", "FullyConnected", "MatMul", "Pooling", "Eltwise", "Concatenation"):
            ov[f"{kind} {precision}"] += 1
    return ort, ov


def compare(arguments, name, path, samples, folder):
    data = folder / "samples.npy"
    np.save(data, samples)
    file = folder / f"{name}-int8.onnx"
    print(agreement.tenon(arguments, "quantize", path, "--data", data, "--out", file, "--batch", COMPARED,
                                 *shlex.split(arguments.options)).strip())
    onnx.checker.check_model(str(file), full_check=True)
    ort, ov = integer_operators(file)
    print("  ONNX Runtime:", ", ".join(f"{count} {op}" for op, count in sorted(ort.items())))
    print("  OpenVINO:", ", ".join(f"{count} {op}" for op, count in sorted(ov.items())))

    copy, names = with_integers(file)
    session = agreement.session(copy)
    inputs = {session.get_inputs()[0].name: samples[:COMPARED]}
    outputs = [output.name for output in session.get_outputs()]
    expected = dict(zip(outputs, session.run(None, inputs)))
    compiled = openvino.Core().compile_model(str(copy), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    peers = {"tenon": agreement.run_tenon(arguments, copy, inputs),
             "OpenVINO": {agreement.file_name(port.any_name): array for port, array in compiled(inputs).items()}}
    far = {}
    for peer, results in peers.items():
        shares, largest = [], []
        for activation in names:
            different = np.abs(results[agreement.file_name(activation)].astype(np.int64) - expected[activation].astype(np.int64))
            shares.append(float(np.mean(different != 0)))
            largest.append(int(different.max(initial=0)))
            if arguments.verbose:
                print(f"    {activation}: {shares[-1]:.2e} of the integers differ, by at most {largest[-1]}")
        far[peer] = max(agreement.difference(expected[output], results[agreement.file_name(output)]) for output in outputs
                        if output not in names)
        print(f"  {peer} and ONNX Runtime: {len(names)} activations, integers that differ: mean {np.mean(shares):.2e}, most {max(shares):.2e}, "
              f"by at most {max(largest)}; outputs by {far[peer]:.2e}", flush=True)
        if peer == "tenon":
            first = next((i for i, share in enumerate(shares) if share > 0), 0)
            passed = shares[0] == 0 and shares[first] <= TIES and largest[first] <= 1
    return passed and far["tenon"] <= max(2 * far["OpenVINO"], 1e-3)


def main():
    parser = agreement.parser(__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, help="an ONNX file with one input")
    parser.add_argument("--data", type=pathlib.Path, help="its samples, .npy")
    parser.add_argument("--verbose", action="store_true", help="print each activation")
    parser.add_argument("--options", default="", help="of `tenon quantize`")
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, path, samples in make_cases(arguments, folder):
            print(name)
            results.append(compare(arguments, name, path, samples, folder))
            print(f"  {'agrees' if results[-1] else 'DIFFERS'}", flush=True)
    agreement.finish(results, "ONNX Runtime")


if __name__ == "__main__":
    main()
