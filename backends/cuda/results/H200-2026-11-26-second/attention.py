# SPDX-License-Identifier: Apache-2.0
"""Attention and its gradient: single calls of Tenon's Python package next to PyTorch's implementations, both by the clock until the device is
done. One line of JSON for each shape and dtype; errors are the largest differences from PyTorch in f64.
With the argument `large`, other shapes, in bf16 alone."""
import json
import sys
import time

import tenon
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

dev = tenon.device("cuda")
def t_time(f, n):
    f(); torch.cuda.synchronize(); dev.synchronize()
    ts = []
    for _ in range(5):
        b = time.perf_counter()
        for _ in range(n): r = f()
        torch.cuda.synchronize(); dev.synchronize()
        ts.append((time.perf_counter() - b) / n)
    return sorted(ts)[2]
large = sys.argv[1:] == ["large"]
shapes = [(8, 12, 128, 64, False), (4, 16, 1024, 64, True), (4, 16, 1024, 128, True), (2, 16, 4096, 128, True), (2, 16, 4096, 128, False), (2, 16, 4096, 64, False)]
if large:
    shapes = [(2, 16, 4096, 128, False), (4, 16, 8192, 128, True), (4, 16, 8192, 128, False), (4, 16, 8192, 64, False)]
for dt in (torch.bfloat16,) if large else (torch.bfloat16, torch.float32):
    for (B, H, S, D, causal) in shapes:
        q, k, v = (torch.randn(B, H, S, D, device="cuda", dtype=dt) for _ in range(3))
        tq, tk, tv = (tenon.from_dlpack(x) for x in (q, k, v))
        n = 20 if dt == torch.bfloat16 or S < 2000 else 3
        flop = 4 * B * H * S * S * D * (0.5 if causal else 1)
        row = {"dtype": str(dt), "shape": [B, H, S, D], "causal": causal}
        y = tenon.ops.attention(tq, tk, tv, scale=D ** -0.5, causal=causal, device=dev)[0]
        ref = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal) if S <= 1024 else None
        yt = torch.from_dlpack(y)
        if ref is not None:
            row["err"] = float((yt.double() - ref).abs().max())
            row["err_torch"] = float((F.scaled_dot_product_attention(q, k, v, is_causal=causal).double() - ref).abs().max())
        a = t_time(lambda: tenon.ops.attention(tq, tk, tv, scale=D ** -0.5, causal=causal, device=dev), n)
        row["tenon_ms"] = round(a * 1e3, 4); row["tenon_tflops"] = round(flop / a / 1e12, 1)
        for name, b in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION), ("efficient", SDPBackend.EFFICIENT_ATTENTION)):
            try:
                with sdpa_kernel(b):
                    a = t_time(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), n)
                row[name + "_ms"] = round(a * 1e3, 4); row[name + "_tflops"] = round(flop / a / 1e12, 1)
            except RuntimeError as e:
                row[name + "_ms"] = None
        # gradient
        try:
            y, ls = tenon.ops.attention(tq, tk, tv, scale=D ** -0.5, causal=causal, device=dev)
            dy = tenon.from_dlpack(torch.randn_like(q))
            g = lambda: tenon.ops.attention_grad(dy, tq, tk, tv, None, y, ls, scale=D ** -0.5, causal=causal, device=dev)
            a = t_time(g, max(2, n // 5)); row["tenon_bwd_ms"] = round(a * 1e3, 4)
            q2, k2, v2 = (x.clone().requires_grad_() for x in (q, k, v))
            for name, b in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION), ("efficient", SDPBackend.EFFICIENT_ATTENTION)):
                try:
                    with sdpa_kernel(b):
                        o = F.scaled_dot_product_attention(q2, k2, v2, is_causal=causal); do = torch.randn_like(o)
                        a = t_time(lambda: torch.autograd.grad(o, (q2, k2, v2), do, retain_graph=True), max(2, n // 5))
                    row[name + "_bwd_ms"] = round(a * 1e3, 4)
                except RuntimeError as e:
                    pass
        except Exception as e:
            row["bwd_error"] = str(e)[:300]
        print(json.dumps(row), flush=True)
