#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tests of the installed package `onnx` as files, in the form that `tenon conformance --profile onnx` reads.

Usage: newest_tests.py --out DIR, then: tenon conformance --backend openblas --profile onnx --data DIR

The package makes its node tests in Python; small converted models lie in it as files. Needs onnx from PyPI (exit code 77: it is missing).
"""
import argparse
import pathlib
import shutil
import sys
import warnings

try:
    import onnx
    import onnx.backend.test
    from onnx import TensorProto, numpy_helper
    from onnx.backend.test.case import model as models
    from onnx.backend.test.case import node as nodes
except ImportError as error:
    print(f"skipped: {error}; pip install onnx numpy")
    sys.exit(77)

CONVERT = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional}


def serialized(value, info):
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    kind = info.type.WhichOneof("value")
    return CONVERT.get(kind, numpy_helper.from_array)(value, info.name).SerializeToString()


def write(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir()
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for j, value in enumerate(values):
                (data / f"{kind}_{j}.pb").write_bytes(serialized(value, infos[j]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder that does not exist yet")
    out = parser.parse_args().out
    counts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cases that overflow on purpose
        cases = nodes.collect_testcases(None) + [case for case in models.collect_testcases() if case.kind == "simple"]
    for case in cases:
        write(case, out / case.kind / case.name)
        counts[case.kind] = counts.get(case.kind, 0) + 1
    for kind in ("pytorch-converted", "pytorch-operator", "light"):
        source = pathlib.Path(onnx.backend.test.__file__).parent / "data" / kind
        shutil.copytree(source, out / kind)
        counts[kind] = sum(1 for entry in source.iterdir() if entry.is_dir() or entry.suffix == ".onnx")
    print(f"onnx {onnx.__version__}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()) + f" tests in {out}")


if __name__ == "__main__":
    main()
