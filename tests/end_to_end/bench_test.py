#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each benchmark runs, and its report has the expected fields. No figure is checked: machines differ.

Usage  bench_test.py TENON BENCHMARK, or bench_test.py TENON compare|variants|onnx|serve
"""
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Fields that a benchmark has in addition to the common ones, in at least one of its lines.
EXTRA = {
    "crossing": ["nodes", "ns_per_node", "kernel_ns_per_node", "ns_per_node_above_kernels"],
    "gemm": ["gflop_per_s"],
    "blas": ["gflop_per_s", "gb_per_s", "flops_per_word", "drop_in_ns"],
    "mnist_mlp": ["images_per_s", "gflop_per_s", "seconds_per_epoch", "peak_rss_mb"],
    "fashion_mnist": ["images_per_s", "gflop_per_s", "seconds_per_epoch"],
    "elementwise": ["gb_per_s", "ns_per_element"],
    "memory": ["gb_per_s"],
    "fusion": ["kernels", "times_one_op"],
    "nets": ["gflop", "gflop_per_s", "workspace_mb"],
    "mnist": ["p50_ms", "p99_ms", "images_per_s", "us_per_step", "times_first"],
    "conv": ["gflop_per_s", "border_us", "run_us"],
    "attention": ["tflop_per_s"],
    "scaling": ["samples_per_s", "speed_up", "efficiency_percent", "sums", "summed_mb", "waited_ms", "sums_ms", "hidden_percent"],
    "pipeline": ["times_max_of_both", "waited_percent", "device_idle_percent"],
    "bandwidth": ["gb_per_s"],
    "generate": ["tokens_per_s", "mb_per_step", "gb_per_s", "times_first"],
    "onnx": ["p90_ms", "p99_ms", "load_ms", "first_run_ms", "first_result_ms", "new_shape_ms", "base_rss_mb", "peak_rss_mb", "parameters_mb",
             "packed_mb", "program_mb"],
}
WITH_PEERS = {"gemm", "blas", "mnist_mlp", "fashion_mnist", "elementwise", "nets", "conv", "attention", "generate"}  # without a peer, a line of these says why
MACHINE = ["processor", "processors", "isa", "memory", "os", "compiler", "git", "tenon", "device", "threads"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
    return done.returncode, done.stdout, done.stderr


def expect(condition, message):
    if not condition:
        sys.exit(f"FAIL: {message}")


def measure(tenon, benchmark, file):
    page = ["--html", str(file.with_suffix(".html"))]
    more = {
        "bandwidth": ["--memory-clock-mhz", "1466.67", "--channels", "4"],
        "blas": page,
        "conv": page,
        "attention": page,
        "mnist": ["--device", "openblas,reference", *page],
        "nets": ["--set", "layers", "--net", "L5", "--batch", "1,2", *page],
        "pipeline": page,
        "scaling": page,
    }.get(benchmark, [])
    verb = ["bandwidth"] if benchmark == "bandwidth" else ["bench", benchmark]
    code, out, err = run(tenon, *verb, "--tiny", "--runs", "2", "--threads", "2", "--json", str(file), *more)
    expect(code == 0, f"bench {benchmark}: exit code {code}\n{err}")
    if benchmark == "bandwidth":
        example = "2 x 1466.67 MHz x 64 bits / 8 x 4 channels = 93.87 GB/s"
        expect(f"openblas:0: {example}" in out, f"the peak that follows from the options:\n{out}")
        code, _, err = run(tenon, "bandwidth", "--tiny", "--channels", "4")
        expect(code == 0 or "add --memory-clock-mhz" in err, f"without the clock: exit code {code}\n{err}")
    if benchmark == "blas":
        page = file.with_suffix(".html").read_text()
        expect("<svg" in page and "daxpy 10" in page and "http" not in page, f"the chart: {page[:300]}")
    if benchmark in ("conv", "attention", "mnist", "nets", "pipeline", "scaling"):
        page = file.with_suffix(".html").read_text()
        expect("class=\"bar\"" in page and "http" not in page, f"the chart: {page[:300]}")
    if benchmark == "scaling":
        many = ["--tiny", "--runs", "2", "--simulate", "1,4,1024", "--link", "1", "--link-latency-us", "1"]
        code, simulated, err = run(tenon, "bench", "scaling", *many)
        expect(code == 0 and "1024 machines, tree" in simulated and "4 machines, ring" in simulated, f"--simulate: exit code {code}\n{simulated}{err}")
        code, _, err = run(tenon, "bench", "scaling", "--tiny", "--simulate", "4")
        expect(code == 1 and "expected the bandwidth of the links by --link GB/S" in err, f"no links: exit code {code}\n{err}")
        code, _, err = run(tenon, "bench", "scaling", "--tiny", "--ranks", "1", "--mpirun", "/nowhere/mpirun")
        expect(code == 1 and "`/nowhere/mpirun -n 1 " in err, f"no mpirun: exit code {code}\n{err}")
    return json.loads(file.read_text()), out


def check_variants(tenon, folder):
    """Several devices, precisions and batches in one run, each with its own lines; invalid requests are errors."""
    file = folder / "variants.json"
    nets = [tenon, "bench", "nets", "--tiny", "--runs", "2", "--set", "hkbu", "--net", "FCN-S", "--phase", "infer"]
    devices = ["--device", "openblas,reference", "--precision", "float32,mixed_bfloat16"]
    code, _, err = run(*nets, *devices, "--batch", "1,2", "--json", str(file))
    expect(code == 0, f"variants: exit code {code}\n{err}")
    report = json.loads(file.read_text())
    names = [line["name"] for line in report["benchmarks"]]
    expected = [f"hkbu FCN-S infer batch {batch}, {device}:0 {precision}"
                for batch in (1, 2) for device in ("openblas", "reference") for precision in ("float32", "mixed_bfloat16")]
    expect(names == expected, f"lines of variants: {names}, expected {expected}")
    expect(all(line["times_first"] > 0 for line in report["benchmarks"]), "ratios to the first")
    expect(len(report["tables"]["side by side"]) == 2, "a line of side by side for each batch")
    expect(len(report["tables"]["crossover"]) == 3, "a line of crossover for each other contender")
    code, _, err = run(*nets, "--device", "openblas", "--kernels", "tuned,naive")
    expect(code == 1 and "has the option 'kernels', got openblas:0" in err, f"no such option: exit code {code}\n{err}")
    code, _, err = run(*nets, "--device", "openblas,nowhere")
    expect(code == 1 and "device 'nowhere' not found" in err, f"no such device: exit code {code}\n{err}")


def check_report(benchmark, report, out):
    for key in MACHINE:
        expect(report["machine"].get(key), f"machine has no {key}: {report['machine']}")
        expect(key in out, f"the text does not show {key}:\n{out}")
    expect(report["machine"]["threads"] == 2, f"threads is {report['machine']['threads']}, expected 2")
    expect(report["benchmarks"], "no benchmarks")
    seen = set()
    for line in report["benchmarks"]:
        for key in ["name", "median_ns", "iqr_ns", "peer", "ratio", "percent_of_roof"]:
            expect(key in line, f"{line} has no {key}")
        expect(line["name"] in out, f"the table lacks {line['name']}:\n{out}")
        expect(math.isfinite(line["median_ns"]) and line["median_ns"] > 0, f"median of {line}")
        expect(line["iqr_ns"] >= 0, f"spread of {line}")
        expect(line["runs"] == 2, f"runs of {line}, expected 2")
        if line["peer"] is None:
            expect(line["ratio"] is None, f"a ratio without a peer: {line}")
        else:
            expect(line["ratio"] > 0 and line["peer_median_ns"] > 0, f"ratio of {line}")
        seen.update(line)
    for key in EXTRA[benchmark]:
        expect(key in seen, f"no line has {key}")
    if benchmark == "fusion":
        kernels = {line["name"]: line["kernels"] for line in report["benchmarks"]}
        expect(kernels["chain of 10, off"] == 10, f"unfused, ten ops are {kernels['chain of 10, off']} kernels")
        expect(kernels["chain of 10, full"] == 1, f"fused, ten ops are {kernels['chain of 10, full']} kernels")
        expect(kernels["step of the MLP, full"] < kernels["step of the MLP, off"], f"a step has as many kernels fused: {kernels}")
    if benchmark in WITH_PEERS:
        without_peer = [line for line in report["benchmarks"] if line["peer"] is None]
        expect(all(line.get("peer_absent") for line in without_peer), f"no reason why there is no peer: {without_peer}")


def write_net(tenon, folder, *options):
    """A small perceptron: its train.yaml and its ONNX file."""
    net, model = folder / "net.yaml", folder / "net.onnx"
    net.write_text("model: {input: {shape: [16]}, layers: [{dense: {units: 8, activation: relu}}, {dense: {units: 3, activation: softmax}}]}\n"
                   "data: {source: random, shape: [16], classes: 3, train_count: 8, test_count: 8}\n"
                   "loss: sparse_categorical_crossentropy\noptimizer: {name: sgd, learning_rate: 0.01}\nbatch_size: 8\nepochs: 1\nseed: 1\n")
    code, _, err = run(tenon, "export", str(net), "--onnx", str(model), *options)
    expect(code == 0, f"export: exit code {code}\n{err}")
    return net, model


def check_serve(tenon, folder):
    """An ONNX model and a train.yaml; wrong values name the option."""
    net, model = write_net(tenon, folder)
    file = folder / "report.json"
    command = [tenon, "bench", "serve"]
    few = ["--tiny", "--clients", "3", "--max-batch", "2", "--max-delay-us", "100", "--threads", "1"]
    code, out, err = run(*command, str(model), *few, "--shape", "x=1x16", "--json", str(file))
    expect(code == 0, f"bench serve FILE.onnx: exit code {code}\n{err}")
    report = json.loads(file.read_text())
    expect([line["name"] for line in report["benchmarks"]] == ["mutex", "batcher off", "batcher on"], f"lines: {report['benchmarks']}")
    for line in report["benchmarks"]:
        for key in ["median_ns", "requests_per_s", "p50_ms", "p99_ms", "p999_ms", "mean_batch", "times_first"]:
            expect(math.isfinite(line[key]) and line[key] > 0, f"{key} of {line}")
        expect(line["runs"] >= 3, f"each client sends a request: {line}")
        expect(1 <= line["mean_batch"] <= (2 if line["name"] == "batcher on" else 1), f"mean batch size of {line}")
    expect(report["machine"]["clients"] == 3 and report["machine"]["max_batch"] == 2, f"the options: {report['machine']}")
    expect("note: batching pays here: " in out or "note: batching does not pay here: " in out, f"no verdict:\n{out}")
    code, out, err = run(*command, str(net), *few)
    expect(code == 0 and "batcher on" in out and "x f32(1,16) random" in out, f"bench serve train.yaml: exit code {code}\n{out}{err}")
    expect(re.search(r"^  max_delay_us  100$", out, re.M) and re.search(r"^  times_one     \d+\.\d\d$", out, re.M), f"bench serve: columns\n{out}")

    _, fixed = write_net(tenon, folder, "--batch", "1")
    for arguments, message in [
            ([str(fixed)], "expected inputs whose first dimension is a batch of any size, got x f32(1,16)"),
            ([str(net), "--max-batch", "0"], "--max-batch: expected a number from 1 to 65536, got '0'"),
            ([str(net), "--max-delay-us", "-1"], "--max-delay-us: expected a number from 0 to 1000000000, got '-1'"),
            ([str(net), "--clients", "none"], "--clients: expected a number"),
            ([str(net), "--seconds", "0"], "--seconds: expected a number above 0, got '0'"),
            ([str(net), "--shape", "x=1x16"], "expected --input and --shape for ONNX files only"),
            ([str(folder / "absent.onnx")], "absent.onnx")]:
        code, _, err = run(*command, *arguments)
        expect(code != 0 and message in err, f"{arguments}: exit code {code}, expected '{message}', got\n{err}")


def check_onnx(tenon, folder):
    """An exported model; a peer that is not installed is a note, an unknown one an error."""
    file = folder / "report.json"
    _, model = write_net(tenon, folder)
    command = [tenon, "bench", str(model), "--tiny", "--runs", "2", "--threads", "2"]
    shapes = ["--shape", "x=1x16", "--shape", "x=3x16"]
    code, out, err = run(*command, *shapes, "--json", str(file))
    expect(code == 0, f"bench FILE.onnx: exit code {code}\n{err}")
    report = json.loads(file.read_text())
    check_report("onnx", report, out)
    expect("x f32(1,16) random" in report["machine"]["inputs"], f"the inputs: {report['machine']['inputs']}")
    code, out, err = run(tenon, "bench", "onnx", *command[2:], "--format", "json")
    expect(code == 0 and json.loads(out)["benchmarks"][0]["name"] == "Tenon", f"--format json: exit code {code}\n{out}{err}")
    code, out, err = run(*command, "--compare", "onnxruntime,openvino", "--python", "/nowhere/python")
    expect(code == 0 and out.count("note: no peer: ") == 2 and "there is no program '/nowhere/python'" in out, f"no interpreter:\n{out}{err}")
    code, _, err = run(*command, "--compare", "onnxruntine")
    expect(code == 1 and "expected one of onnxruntime, openvino, got 'onnxruntine'" in err, f"an unknown peer: exit code {code}\n{err}")
    code, _, err = run(*command, *shapes, "--shape", "x=4x16")
    expect(code == 1 and "expected at most 2 shapes of the input 'x', got 3" in err, f"a third shape: exit code {code}\n{err}")
    code, _, err = run(tenon, "bench", str(folder / "absent.onnx"))
    expect(code == 1 and "absent.onnx" in err, f"a missing file: exit code {code}\n{err}")


def check_compare(tenon, folder):
    old, new = folder / "old.json", folder / "new.json"
    report, _ = measure(tenon, "crossing", old)
    report["benchmarks"][0]["median_ns"] /= 4
    report["benchmarks"][0]["iqr_ns"] = 0
    report["benchmarks"][1]["name"] = "a new one"
    report["machine"]["threads"] = 3
    new.write_text(json.dumps(report))
    code, out, err = run(tenon, "bench", "compare", str(old), str(new))
    expect(code == 0, f"compare: exit code {code}\n{err}")
    expect("4.000x" in out, f"a fourth of the time is not 4.000x:\n{out}")
    expect("a new one" in out, f"a benchmark that only the new report has is missing:\n{out}")
    expect("threads differs: 2 then, 3 now" in out, f"a different thread count is not reported:\n{out}")

    new.write_text('{"machine": {}}')
    code, out, err = run(tenon, "bench", "compare", str(old), str(new))
    expect(code == 1 and str(new) in err and "is not a report" in err, f"not a report: exit code {code}\n{err}")
    code, out, err = run(tenon, "bench", "compare", str(folder / "absent.json"), str(new))
    expect(code == 1 and "got no file that can be read" in err and "absent.json" in err, f"a missing report: exit code {code}\n{err}")


def main():
    tenon, benchmark = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if benchmark == "compare":
            check_compare(tenon, Path(folder))
        elif benchmark == "variants":
            check_variants(tenon, Path(folder))
        elif benchmark == "onnx":
            check_onnx(tenon, Path(folder))
        elif benchmark == "serve":
            check_serve(tenon, Path(folder))
        else:
            check_report(benchmark, *measure(tenon, benchmark, Path(folder) / "report.json"))


if __name__ == "__main__":
    main()
