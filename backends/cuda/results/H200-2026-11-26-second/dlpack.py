# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU exchanged with PyTorch, CuPy and JAX by DLPack."""
import cupy
import jax
import jax.numpy as jnp
import tenon
import torch

dev = tenon.device("cuda")
print(tenon.__version__, dev)
x = torch.arange(12., device="cuda").reshape(3, 4)
t = tenon.from_dlpack(x)
print("device of a tensor from torch:", t.device, t.shape, t.dtype)
print("no copy:", torch.from_dlpack(t).data_ptr() == x.data_ptr())
y = torch.from_dlpack(t * 2 + 1)
print("op on device:", y.is_cuda, bool((y == x * 2 + 1).all()))
with torch.cuda.stream(torch.cuda.Stream()):
    big = torch.zeros(1 << 26, device="cuda")
    for _ in range(50):
        big += 1
    r = torch.from_dlpack(tenon.from_dlpack(big) + 1)
    print("ordered after another stream:", bool((r == 51).all()))
c = tenon.from_dlpack(cupy.arange(10, dtype=cupy.float32))
print("cupy:", c.device, (c + 1).numpy())
print("cupy from tenon:", cupy.from_dlpack(c + 1).sum())
j = jnp.arange(6.0)
from_jax = tenon.from_dlpack(j)
print("jax:", j.devices(), from_jax.device, (from_jax + 1).numpy())
print("jax from tenon:", jax.dlpack.from_dlpack(from_jax + 1))
