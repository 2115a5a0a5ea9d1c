# SPDX-License-Identifier: Apache-2.0
"""Facts about the machine, the backend's devices, a Python with PyTorch."""
import csv
import glob
import json
import os
import platform
import re
import shutil
import sys

from gpu_checks import process
from gpu_checks.process import output_of

# What nvidia-smi is asked. In the mode Exclusive_Process only one process at a time can use the GPU.
FACTS = "name,driver_version,memory.total,clocks.max.sm,power.limit,compute_mode,mig.mode.current,persistence_mode"


def first_match(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return None
    return found.group(1) if found else None


def machine():
    return {
        "system": " ".join(platform.uname()[i] for i in (0, 2, 4)),
        "distribution": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "processor": first_match("/proc/cpuinfo", r"^model name\s*: (.*)$"),
        "processors": len(os.sched_getaffinity(0)),
        "memory_kb": int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0),
        "driver": first_match("/proc/driver/nvidia/version", r"^NVRM version: (.*)$"),
        "nvidia_smi": output_of(["nvidia-smi", "--query-gpu=" + FACTS, "--format=csv"]),
    }


def for_one_process(facts):
    """Whether a GPU of machine() is in the mode in which a second process finds it unavailable."""
    rows = csv.DictReader((facts["nvidia_smi"] or "").splitlines(), skipinitialspace=True)
    return any((row.get("compute_mode") or "").strip() == "Exclusive_Process" for row in rows)


class Devices:
    """The devices of the backend. Without any, `reason` says why; `broken`: because `tenon backends` failed."""

    def __init__(self, found, reason=None, broken=False):
        self.found, self.reason, self.broken = found, reason, broken


def devices_of(tenon, backend, environment, limit_s):
    code, said, problem = None, "", None
    try:
        code, out, said = process.run_captured([tenon, "backends", "--format", "json"], limit_s, environment)
        record = next((record for record in json.loads(out)["backends"] if record["name"] == backend), None)
        if record is None:
            return Devices([], f"backend '{backend}' not found in {os.path.dirname(os.path.dirname(tenon))}")
        if record["state"] != "healthy":
            return Devices([], f"{record['reason']} ({record['remedy']})")
        return Devices(record["devices"])
    except (OSError, process.TimedOut) as error:
        problem = str(error)
    except (ValueError, KeyError, TypeError) as error:
        problem = process.how_it_ended(code) if code else f"unexpected output: {error!r}"
    return Devices([], "; ".join(filter(None, (f"tenon backends: {problem}", said.strip()[-2000:]))), broken=True)


def python_with_torch(limit_s=60):
    """An interpreter whose PyTorch finds a GPU, else any with PyTorch, else None."""
    ask = "import torch; print(torch.cuda.is_available())"
    with_torch = []
    for python in dict.fromkeys(filter(None, (sys.executable, shutil.which("python3"), shutil.which("python"), "/usr/bin/python3",
                                              *glob.glob("/opt/*/bin/python3")))):
        answer = (output_of([python, "-c", ask], limit_s) or "").strip()
        if answer == "True":  # the import takes seconds, in some environments minutes
            return python
        if answer:
            with_torch.append(python)
    return with_torch[0] if with_torch else None
