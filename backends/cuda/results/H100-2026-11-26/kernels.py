# SPDX-License-Identifier: Apache-2.0
"""Times of kernels on the device, by PyTorch's profiler, which sees every kernel of the process: Tenon's single ops next to PyTorch's, tensors of
2^28 elements. Then what a call of a small op costs the host. Needs a GPU, PyTorch, and Tenon's Python package."""
import time

import tenon
import torch
from torch.profiler import ProfilerActivity, profile

device = tenon.device("cuda")
ops = tenon.ops
ELEMENTS = 1 << 28


def kernels_of(call, repetitions=5):
    """(name, mean microseconds) of each kernel of a call, longest first."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as run:
        for _ in range(repetitions):
            call()
        torch.cuda.synchronize()
    total = {}
    for event in run.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            total[event.name] = total.get(event.name, 0) + event.device_time_total / repetitions
    return sorted(total.items(), key=lambda item: -item[1])


for dtype, size in ((torch.float32, 4), (torch.bfloat16, 2)):
    x, y = (torch.randn(ELEMENTS, device="cuda", dtype=dtype) for _ in range(2))
    a, b = tenon.from_dlpack(x), tenon.from_dlpack(y)
    rows = a.reshape(ELEMENTS // 1024, 1024)
    pairs = [
        ("add", 3, lambda: a + b, lambda: x + y),
        ("relu", 2, lambda: ops.relu(a, device=device), lambda: torch.relu(x)),
        ("gelu", 2, lambda: ops.gelu(a, device=device), lambda: torch.nn.functional.gelu(x)),
        ("exp", 2, lambda: ops.exp(a, device=device), lambda: torch.exp(x)),
        ("sum", 1, lambda: ops.reduce_sum(a, device=device), lambda: x.sum()),
        ("sum of columns", 1, lambda: ops.reduce_sum(rows, axes=[0], device=device), lambda: x.view(-1, 1024).sum(0)),
        ("sum of rows", 1, lambda: ops.reduce_sum(rows, axes=[1], device=device), lambda: x.view(-1, 1024).sum(1)),
        ("softmax of rows", 2, lambda: ops.softmax(rows, axis=-1, device=device), lambda: torch.softmax(x.view(-1, 1024), -1)),
    ]
    for name, passes, ours, theirs in pairs:
        us, peer = (sum(time for _, time in kernels_of(call)) for call in (ours, theirs))
        print(f"{str(dtype)[6:]:9} {name:16} tenon {us:8.1f} us {passes * ELEMENTS * size / us / 1e6:5.2f} TB/s   "
              f"pytorch {peer:8.1f} us {passes * ELEMENTS * size / peer / 1e6:5.2f} TB/s", flush=True)
    del x, y, a, b, rows

small = torch.ones(1024, device="cuda")
own = tenon.from_dlpack(small)


def wall(call, repetitions=2000):
    for _ in range(50):
        call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repetitions):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repetitions * 1e6


def add_and_wait():
    small + small
    torch.cuda.synchronize()


print(f"host time of an addition of 1024 elements: tenon {wall(lambda: own + own):.1f} us, which includes waiting for the device; "
      f"pytorch {wall(lambda: small + small):.1f} us, with synchronize() {wall(add_and_wait):.1f} us")
