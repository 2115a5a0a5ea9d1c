# SPDX-License-Identifier: Apache-2.0
"""The checks: their commands, time limits and order."""
import glob
import os

from gpu_checks.reports import conformance_reports, unit_counts

BENCHMARKS = ("crossing", "gemm", "elementwise", "memory", "fusion", "pipeline", "mnist_mlp", "fashion_mnist", "nets")

# Words of commands that are replaced when the check starts.
BUDGET = "{budget}"  # the seconds after which it should end by itself
CASE_LIMIT = "{case limit}"  # the seconds that one case of the kit may take
JOBS = "{jobs}"
PEER = "{peer}"  # --python and an interpreter with PyTorch, or nothing


class Step:
    """One command of a check. Its standard output is JSON for `json_out`, or text for the check's log."""

    def __init__(self, command, json_out=None):
        self.command, self.json_out = command, json_out


class Check:
    def __init__(self, name, limit_s, steps, needs_device=True, after=None):
        self.name, self.limit_s, self.steps, self.needs_device = name, limit_s, steps, needs_device
        self.after = after or (lambda: {})  # returns figures for the summary, from the files that the steps wrote

    def takes(self, placeholder):
        return any(placeholder in step.command for step in self.steps)


def comparisons(backend, cpu, tiny):
    """name: (limit in seconds, benchmarks with arguments) of the comparisons with the CPU, naive kernels, precisions and PyTorch."""
    both = f"{backend},{cpu}" if cpu else backend
    precisions = "float32,tf32,mixed_bfloat16"
    nets = ("own", "layers") if tiny else ("own", "layers", "cnn --net AlexNet", "cnn --net VGG-16", "cnn --net ResNet-50", "hkbu --net FCN-S",
                                           "hkbu --net LSTM-32")
    checks = {
        "compare_mnist": (540, [f"mnist --device {both}", f"mnist --net convnet --device {backend} --precision {precisions}"]),
        "compare_convolutions": (540, [f"conv --device {backend} --precision {precisions}"]),
        "compare_attention": (300, [f"attention --device {backend} --precision mixed_bfloat16"]),
        "compare_precisions": (540, [f"nets --set own --device {backend} --precision {precisions}"]
                               + ([] if tiny else [f"nets --set hkbu --net ResNet-50 --batch 64 --device {backend} --precision {precisions}"])),
    }
    if not tiny:
        resnet = f"nets --set cnn --net ResNet-50 --device {backend} --precision mixed_bfloat16 --torch-compile"
        checks["compare_compiled_training"] = (540, [f"{resnet} --phase train --batch 256"])
        checks["compare_compiled_inference"] = (540, [f"{resnet} --phase infer --batch 1"])
    if cpu:
        sweep, images = ("1,2", "own") if tiny else ("1,4,16,64,256,1024,4096", "cnn --net ResNet-18 --batch 1,2,4,8,16,32,64,128")
        checks["compare_crossover"] = (540, [f"mnist --phase infer --batch {sweep} --device {cpu},{backend}",
                                             f"nets --set {images} --phase infer --device {cpu},{backend}"])
    if backend == "cuda":  # the only backend with naive kernels
        checks["compare_kernels"] = (540, [f"nets --set {net} --device {backend} --kernels tuned,naive" for net in nets])
        # Benchmarks with values of an option of the backend. A block has all units of the recurrent layers of LSTM-narrow; of those of LSTM-32,
        # 256 in f32, only several blocks do, so that auto is library.
        wide = [] if tiny else [("nets --set hkbu --net LSTM-32", ("cooperative", "library"))]
        for name, limit_s, option, benchmarks in (
                ("recurrent", 250, "recurrent", [("nets --set own --net LSTM-narrow", ("auto", "cooperative", "library")), *wide]),
                ("launches", 120, "programmatic_launch", [("mnist --phase train", ("off", "on"))])):
            checks[f"compare_{name}"] = (limit_s, [f"{benchmark} --device {backend} --set backends.options.cuda.{option}={value}"
                                                   for benchmark, values in benchmarks for value in values])
    return checks


def conformance_suites(backend):
    """(name, limit in seconds, arguments) of the runs of the kit."""
    suites = []
    if backend == "cuda":
        # Options that are off by default until they are measured on a GPU. Kernels whose blocks wait for each other, and kernels that are started
        # before the one that they wait for has ended: the families of small products, optimizers and losses.
        for option, suffix, families in (("recurrent=cooperative", "cooperative", ("rnn", "gru", "lstm")),
                                         ("programmatic_launch=on", "early", ("gemm", "optimizer", "softmax_cross_entropy"))):
            suites += [(f"{family}_{suffix}", 120, ["--profile", "ops", "--family", family, "--backend-option", option])
                       for family in families]
    return suites + [(profile, 540, ["--profile", profile]) for profile in ("core", "training", "ops", "blas")]


def list_checks(tree, out, backend, tiny):
    """All checks, the most informative ones first: a run with a budget may not reach the last."""
    tenon = os.path.join(tree, "bin/tenon")
    results = lambda name, kind: os.path.join(out, f"{name}.{kind}")
    checks = [
        Check("doctor", 120, [Step([tenon, "doctor"]), Step([tenon, "doctor", "--format", "json"], results("doctor", "json"))], False),
        Check("devices", 120, [Step([tenon, "devices", "--format", "cudatest"]), Step([tenon, "devices"]),
                               Step([tenon, "devices", "--format", "json"], results("devices", "json"))], False),
    ]
    for program in sorted(glob.glob(os.path.join(tree, "bin/unit_gpu*"))):
        name = os.path.basename(program)
        checks.append(Check(name, 300, [Step([program, "--no-colors=true"])], after=lambda name=name: unit_counts(out, name)))
    roofs = os.path.join(tree, "bin/tenon_cuda_roofs")
    if os.path.isfile(roofs):  # the peaks that benchmark figures are relative to
        checks.append(Check("roofs", 120, [Step([roofs], results("roofs", "json"))]))
    for suite, limit_s, selection in conformance_suites(backend):
        name = "conformance_" + suite
        command = [tenon, "conformance", "--backend", backend, *selection, "--format", "json", "--jobs", JOBS,
                   "--out", results(name, "json"), "--budget", BUDGET, "--timeout", CASE_LIMIT]
        checks.append(Check(name, limit_s, [Step(command)], after=lambda name=name: conformance_reports(out, name)))
    small = ["--tiny"] if tiny else []
    for benchmark in ("bandwidth",) + BENCHMARKS:
        name = "bench_" + benchmark
        verb = ["bandwidth"] if benchmark == "bandwidth" else ["bench", benchmark, PEER]
        checks.append(Check(name, 300, [Step([tenon, *verb, "--device", backend, "--json", results(name, "json"), *small])]))
    cpu = "openblas" if glob.glob(os.path.join(tree, "lib/tenon/backends/*backend_openblas*")) else None
    for name, (limit_s, benchmarks) in comparisons(backend, cpu, tiny).items():
        steps = []
        for index, arguments in enumerate(benchmarks, 1):
            stem = name if len(benchmarks) == 1 else f"{name}_{index}"
            reports = ["--json", results(stem, "json"), "--html", results(stem, "html")]
            steps.append(Step([tenon, "bench", *arguments.split(), *reports, *small, PEER]))
        checks.append(Check(name, limit_s, steps))
    return checks
