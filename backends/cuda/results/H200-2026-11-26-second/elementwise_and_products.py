# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops, softmax and products of large tensors: single calls of Tenon's Python package next to PyTorch's, both by the clock until the
device is done. One line of JSON for each."""
import json
import time

import tenon
import torch

dev = tenon.device("cuda")
def t_time(f, n):
    f(); torch.cuda.synchronize(); dev.synchronize(); ts = []
    for _ in range(5):
        b = time.perf_counter()
        for _ in range(n): r = f()
        torch.cuda.synchronize(); dev.synchronize(); ts.append((time.perf_counter() - b) / n)
    return sorted(ts)[2]
n = 1 << 28
for dt, size in ((torch.float32, 4), (torch.bfloat16, 2)):
    x, y = torch.randn(n, device="cuda", dtype=dt), torch.randn(n, device="cuda", dtype=dt)
    a, b = tenon.from_dlpack(x), tenon.from_dlpack(y)
    o = tenon.ops
    rows = [("add", 3, lambda: a + b, lambda: x + y), ("relu", 2, lambda: o.relu(a, device=dev), lambda: torch.relu(x)), ("exp", 2, lambda: o.exp(a, device=dev), lambda: torch.exp(x)),
            ("gelu", 2, lambda: o.gelu(a, device=dev), lambda: torch.nn.functional.gelu(x)), ("reduce_sum", 1, lambda: o.reduce_sum(a, device=dev), lambda: x.sum()),
            ("softmax", 2, lambda: o.softmax(a.reshape(n // 1024, 1024), axis=-1, device=dev), lambda: torch.softmax(x.view(-1, 1024), -1))]
    for name, passes, f, g in rows:
        try:
            t, p = t_time(f, 10), t_time(g, 10)
            print(json.dumps({"op": name, "dtype": str(dt), "tenon_ms": round(t * 1e3, 4), "tenon_TBps": round(passes * n * size / t / 1e12, 2), "torch_ms": round(p * 1e3, 4), "torch_TBps": round(passes * n * size / p / 1e12, 2)}), flush=True)
        except Exception as e: print(name, dt, type(e).__name__, str(e)[:200])
for dt in (torch.bfloat16, torch.float32):
    for m in (1024, 8192):
        x, y = torch.randn(m, m, device="cuda", dtype=dt), torch.randn(m, m, device="cuda", dtype=dt)
        a, b = tenon.from_dlpack(x), tenon.from_dlpack(y)
        t, p = t_time(lambda: a @ b, 20), t_time(lambda: x @ y, 20)
        print(json.dumps({"op": "matmul", "m": m, "dtype": str(dt), "tenon_ms": round(t * 1e3, 4), "torch_ms": round(p * 1e3, 4), "tenon_tflops": round(2 * m ** 3 / t / 1e12, 1), "torch_tflops": round(2 * m ** 3 / p / 1e12, 1)}), flush=True)
