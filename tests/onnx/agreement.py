# SPDX-License-Identifier: Apache-2.0
"""What the comparisons with ONNX Runtime and PyTorch share: commands of `tenon`, sessions of ONNX Runtime, the difference of outputs."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(4)  # errors are raised as well


def parser(description):
    """The options of all comparisons: --tenon, --device and --filter."""
    result = argparse.ArgumentParser(description=description)
    result.add_argument("--tenon", required=True, help="the program `tenon`")
    result.add_argument("--device", default="")
    result.add_argument("--filter", default="*", help="a pattern of names, as of files")
    return result


def session(model):
    return onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])


def tenon(arguments, *command):
    """Runs a command of `tenon` on the device of the options, and returns its output. Raises RuntimeError with its message."""
    command = [arguments.tenon, *map(str, command)] + (["--device", arguments.device] if arguments.device else [])
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"tenon {command[1]}: {(result.stderr or result.stdout).strip() or f'exit code {result.returncode}'}")
    return result.stdout


def run_tenon(arguments, model, inputs):
    """The outputs by the names of their files. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        options = []
        for name, array in inputs.items():
            file = f"{folder}/in_{file_name(name)}.npy"
            np.save(file, array)
            options += ["--input", f"{name}={file}"]
        tenon(arguments, "run", model, "--out", folder, *options)
        return {file.stem: np.load(file) for file in pathlib.Path(folder).glob("*.npy") if not file.name.startswith("in_")}


def file_name(output):
    """The name of the file, without its ending, that `tenon run` writes an output to."""
    return output.replace("/", "_").replace(":", "_")


def difference(expected, got):
    """The largest difference relative to the largest element, or to 0.01 if that is larger, since ONNX Runtime's sigmoid is exact to 1e-7
    only in absolute terms; integers: the share of elements that differ."""
    if expected.shape != got.shape:
        return float("inf")
    if expected.dtype.kind != "f":
        return float(np.mean(expected != got)) if expected.size else 0.0
    scale = max(float(np.max(np.abs(expected), initial=0)), 1e-2)
    worst = np.max(np.abs(expected.astype(np.float64) - got), initial=0) / scale
    return float(worst) if np.isfinite(worst) else float("inf")


def depends_on_inputs(rows):
    """Whether rows of a float output differ by more than rounding hides: a network whose signal dies away agrees with any other."""
    if len(rows) < 2 or rows.dtype.kind != "f":
        return True
    return float(np.max(np.ptp(rows, axis=0), initial=0)) > 1e-3 * float(np.max(np.abs(rows), initial=0))


def compare(arguments, model, cases):
    """The largest difference over these inputs and all outputs, and the message of an error of Tenon or ""."""
    expected_session = session(model)
    outputs = [output.name for output in expected_session.get_outputs()]
    worst = 0.0
    for inputs in cases:
        expected = expected_session.run(None, inputs)  # raises what it refuses
        try:
            got = run_tenon(arguments, model, inputs)
        except RuntimeError as error:
            return worst, str(error)
        if not depends_on_inputs(expected[0]):
            return worst, f"the rows of {outputs[0]} are equal: there is nothing to compare"
        for output, array in zip(outputs, expected):
            worst = max(worst, difference(array, got[file_name(output)]))
    return worst, ""


def finish(results, reference):
    """Prints how many cases passed and exits: with 0 if all of them did. A result of None is a case with which nothing was compared."""
    compared = [result for result in results if result is not None]
    print(f"{sum(compared)} of {len(compared)} models agree with {reference}; {len(results) - len(compared)} not compared")
    sys.exit(0 if compared and all(compared) else 1)
