# SPDX-License-Identifier: Apache-2.0
"""Shared by the PyTorch peers: devices, precisions, and timing that waits for the device."""
import json
import os
import sys
import time


def open_torch(parser):
    """The arguments of the command line, with those of the device, and torch, configured by them. Without it, says why and exits."""
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["float32", "tf32", "mixed_bfloat16", "mixed_float16"], default="float32")
    parser.add_argument("--channels-last", action="store_true", help="store images with their channels last")
    parser.add_argument("--compile", action="store_true", help="compile the model with torch.compile")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]:
        os.environ[variable] = str(arguments.threads)  # read when the libraries are loaded; torch does not set OpenBLAS's threads later
    try:
        import torch
    except ImportError as error:
        absent(f"{error} (apt-get install python3-torch)")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        absent(f"PyTorch {torch.__version__} finds no CUDA device")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    tf32 = arguments.precision != "float32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True  # selects the fastest algorithm
    return arguments, torch


def absent(reason):
    print(json.dumps({"absent": f"{sys.executable}: {reason}"}))
    sys.exit()


def blas_in_use():
    """The BLAS library mapped into this process: Debian's PyTorch uses the system's."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            files = {line.split()[-1] for line in maps if "blas" in line.split()[-1] and ".so" in line}
    except OSError:
        files = set()
    # libblas.so.3 may be a thin wrapper of another library.
    named = sorted(files, key=lambda file: ("openblas" not in os.path.basename(file), file))
    return named[0] if named else "unknown"


def name_of(torch, arguments):
    name = f"PyTorch {torch.__version__} {'compiled' if arguments.compile else 'eager'}"
    if arguments.device == "cpu":
        name += f", {torch.get_num_threads()} threads, BLAS {blas_in_use()}"
    else:
        name += f", {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    if arguments.precision != "float32":
        name += f", {arguments.precision}"
    return name + (", channels-last" if arguments.channels_last else "")


def autocast(torch, arguments):
    """The context that a forward pass and its loss run in."""
    dtypes = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}
    dtype = dtypes.get(arguments.precision)
    return torch.autocast(arguments.device, dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def memory_format(torch, arguments):
    return torch.channels_last if arguments.channels_last else torch.contiguous_format


def synchronize(torch, arguments):
    if arguments.device == "cuda":
        torch.cuda.synchronize()


def gpu_seconds(torch, run, runs):
    """Seconds of `run`, `runs` times, by events around ten in a row, after two that are not counted."""
    def once():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / 10
    return [once() for _ in range(runs + 2)][2:]


def time_runs(torch, arguments, run, runs, warm_up):
    """Wall-clock and processor seconds per run, each from an idle device to an idle device, after `warm_up` runs that are not timed."""
    seconds, cpu_seconds = [], []
    for i in range(runs + warm_up):
        synchronize(torch, arguments)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        run()
        synchronize(torch, arguments)
        if i >= warm_up:
            seconds.append(time.perf_counter() - begin)
            cpu_seconds.append(time.process_time() - cpu_begin)
    return seconds, cpu_seconds
