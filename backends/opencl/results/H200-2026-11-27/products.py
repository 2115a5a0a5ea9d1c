import sys, time
import tenon
dev = sys.argv[1]
big = len(sys.argv) > 2
def t(name, f, flops, n=5):
    f(); ts = []
    for _ in range(n):
        a = time.time(); y = f(); s = y.sum().item() if False else None; y.to(dev); ts.append(time.time() - a)
    ts.sort(); print(f"{name:40s} {ts[len(ts)//2]*1e3:9.3f} ms {flops/ts[len(ts)//2]/1e9:9.1f} GFLOP/s", flush=True)
def r(*s): return tenon.full(s, 0.5, device=dev)
m = lambda x, y: tenon.ops.matmul(x, y, device=dev)
a, b, c = r(64, 288), r(100, 288, 196), r(288, 19600)
t("batched 100x(64,288,196)", lambda: m(a, b), 2*64*288*19600)
t("merged (64,288,19600)", lambda: m(a, c), 2*64*288*19600)
for n in ([512, 1024, 2048, 4096] if big else [512, 1024]):
    x = r(n, n); t(f"square {n}", lambda: m(x, x), 2*n**3)
