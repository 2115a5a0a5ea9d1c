#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the models of exporters.py and models.py on Tenon, ONNX Runtime and OpenVINO, in turns, with `tenon bench`.

Usage: speed.py --tenon build/release/bin/tenon [--models DIR] [--exported DIR] [--threads N] [--filter GLOB]

Prints for each model the median time of a run, that of each peer over it, the time to the first result and the peak of resident memory,
then the geometric means of the ratios of nets in f32; those of 8 bits are listed beside them. Needs the packages of exporters.py, openvino,
and the models of tools/fetch-models (exit code 77: one is missing).
"""
import fnmatch
import json
import math
import pathlib
import sys
import tempfile

import agreement
import exporters
import models
import numpy as np

PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def cases(arguments):
    """Name, file and inputs of each model, at batch 1 and its last shape."""
    for case in exporters.all_cases():
        name = f"{case.exporter}/{case.name}"
        if case.exporter in ("torch script", "keras") and fnmatch.fnmatch(name, arguments.filter):
            path = exporters.make_file(case, arguments.exported)
            if isinstance(path, str):
                print(f"{name}: not exported: {path}")
                continue
            yield name, path, next(iter(exporters.named_inputs(case, path).values()))
    for name, _, shapes, _ in models.MODELS:
        path = arguments.models / name
        if path.exists() and fnmatch.fnmatch(name, arguments.filter):
            yield name, path, models.make_all(shapes[-1], np.random.default_rng(0))


def measure(arguments, path, inputs, folder):
    """The entries of `tenon bench` by runtime. Raises RuntimeError."""
    options = []
    for i, (name, array) in enumerate(inputs.items()):
        np.save(folder / f"{i}.npy", array)
        options += ["--input", f"{name}={folder}/{i}.npy"]
    report = folder / "report.json"
    agreement.tenon(arguments, "bench", path, "--compare", ",".join(PEERS), "--python", sys.executable, "--threads", arguments.threads,
                    "--json", report, *options)
    entries = json.loads(report.read_text())["benchmarks"]
    return {next((key for key, title in PEERS.items() if entry["name"].startswith(title)), "tenon"): entry for entry in entries}


def main():
    parser = agreement.parser(__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path.home() / ".cache/tenon/models")
    parser.add_argument("--exported", type=pathlib.Path, help="where the files of exporters.py are kept")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    ratios = {peer: [] for peer in PEERS}
    print(f"{'model':48} {'ms':>8}  " + "  ".join(f"{peer:>11}" for peer in PEERS) + "  first result, ms    peak, MB")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        arguments.exported = arguments.exported or folder / "exported"
        arguments.exported.mkdir(parents=True, exist_ok=True)
        for name, path, inputs in cases(arguments):
            try:
                entries = measure(arguments, path, inputs, folder)
            except RuntimeError as error:
                print(f"{name}: {error}", flush=True)
                continue
            times = {peer: entries[peer]["times_tenon"] if peer in entries else math.nan for peer in PEERS}
            quantised = "int8" in name or "common_old" in name
            for peer, ratio in times.items():
                if not quantised and ratio == ratio:
                    ratios[peer].append(ratio)
            columns = [" ".join(f"{entries[runtime][key]:6.0f}" if runtime in entries else "     -" for runtime in ("tenon", *PEERS))
                       for key in ("first_result_ms", "peak_rss_mb")]
            print(f"{name + (' (8 bits)' if quantised else ''):48} {entries['tenon']['median_ns'] / 1e6:8.3f}  "
                  + "  ".join(f"{ratio:11.2f}" for ratio in times.values()), *columns, sep="  ", flush=True)
    for peer, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            print(f"f32, {len(values)} models, {PEERS[peer]} over Tenon: geometric mean {mean:.2f}, smallest {min(values):.2f}")
    sys.exit(0 if ratios["onnxruntime"] else 1)


if __name__ == "__main__":
    main()
