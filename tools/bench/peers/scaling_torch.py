#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench scaling --ranks`: the same training steps in PyTorch, on processes that DistributedDataParallel connects by Gloo.

Usage  scaling_torch.py --net mnist_mlp|convnet [--batch 512] [--ranks 1,2] [--runs 5] [--steps 20]

The whole batch is divided among the processes, each with one thread. A step is forward, loss, gradients, their sum over the processes and
RMSprop's update, on data that is in memory. Prints a line of JSON for each number of processes: {"name": ..., "ranks": 2, "seconds": [a step's
mean time in each run]}, after one run that is not timed, or {"absent": why}.
"""
import argparse
import json
import os
import time

import torch_device


def net(nn, name):
    """models/<name>/model.yaml; a final softmax is part of PyTorch's loss."""
    if name == "mnist_mlp":
        sizes = (784, 300, 100, 10)
        layers = [nn.Flatten()]
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [nn.Linear(inputs, outputs, bias=False), nn.ReLU()]
        return nn.Sequential(*layers[:-1])
    layers, channels = [nn.Unflatten(1, (1, 28))], 1
    for filters in (32, 64, 128):
        layers += [nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Dropout(0.2)]
        channels = filters
    layers += [nn.Flatten(), nn.Linear(1152, 625, bias=False), nn.ReLU(inplace=True), nn.Dropout(0.55), nn.Linear(625, 10, bias=False)]
    return nn.Sequential(*layers)


def train(rank, ranks, arguments):
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = net(nn, arguments.net)
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(arguments.port))
        distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001, alpha=0.999, eps=1e-8)
    loss_of = nn.CrossEntropyLoss()
    samples = arguments.batch // ranks
    # of no class that could be learned: gradients stay as large as at the start
    x, y = torch.rand(samples, 28, 28), torch.randint(0, 10, (samples,))
    seconds = []
    for run in range(arguments.runs + 1):
        if ranks > 1:
            distributed.barrier()
        begin = time.perf_counter()
        for _ in range(arguments.steps):
            optimizer.zero_grad(set_to_none=True)
            loss_of(model(x), y).backward()
            optimizer.step()
        if ranks > 1:
            distributed.barrier()
        if run > 0:
            seconds.append((time.perf_counter() - begin) / arguments.steps)
    if rank == 0:
        print(json.dumps({"name": f"PyTorch {torch.__version__}, {arguments.net}, 1 thread each", "ranks": ranks, "seconds": seconds}))
    if ranks > 1:
        distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--net", choices=["mnist_mlp", "convnet"], required=True)
    parser.add_argument("--batch", type=int, default=512, help="samples of all processes")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--port", type=int, default=29531)
    arguments = parser.parse_args()
    try:
        import torch.multiprocessing as processes
    except ImportError as error:
        torch_device.absent(f"{error} (apt-get install python3-torch)")

    for ranks in map(int, arguments.ranks.split(",")):
        if arguments.batch % ranks != 0:
            parser.error(f"--batch: expected a multiple of {ranks}, got {arguments.batch}")
        processes.spawn(train, (ranks, arguments), nprocs=ranks)


if __name__ == "__main__":
    main()
