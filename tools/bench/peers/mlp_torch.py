#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `tenon bench mnist_mlp` and `fashion_mnist`: the same training in PyTorch, eager.

The work is the same as ours: samples are bytes, gathered in a new order each epoch and scaled to [0, 1]; each step does forward, loss,
gradients and update, and accumulates the mean loss and the accuracy. Prints one JSON object:
{"name": "PyTorch 1.13.0, 2 threads", "seconds": [one per timed epoch], "cpu_seconds": [...]}, or {"absent": why}.
"""
import argparse
import json
import time

import torch_device


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="784,300,100,10", help="layer sizes, starting with the input")
    parser.add_argument("--bias", type=int, default=0)
    parser.add_argument("--optimizer", choices=["rmsprop", "adam"], default="rmsprop")
    parser.add_argument("--samples", type=int, default=60000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5, help="timed epochs, after one that is not timed")
    arguments, torch = torch_device.open_torch(parser)

    sizes = [int(size) for size in arguments.sizes.split(",")]
    layers = []
    for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        layers.append(torch.nn.Linear(inputs, outputs, bias=bool(arguments.bias)))
        if i + 2 < len(sizes):
            layers.append(torch.nn.ReLU())
    device = arguments.device
    model = torch.nn.Sequential(*layers).to(device)
    if arguments.optimizer == "rmsprop":
        optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001, alpha=0.999, eps=1e-8)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loss_of = torch.nn.CrossEntropyLoss()
    x = torch.randint(0, 256, (arguments.samples, sizes[0]), dtype=torch.uint8)
    y = torch.randint(0, sizes[-1], (arguments.samples,))

    seconds, cpu_seconds = [], []
    for epoch in range(arguments.epochs + 1):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        order = torch.randperm(arguments.samples)
        total_loss = torch.zeros((), device=device)
        correct = torch.zeros((), dtype=torch.int64, device=device)
        for at in range(0, arguments.samples, arguments.batch):
            indices = order[at : at + arguments.batch]
            inputs = x[indices].to(device).float().div_(255)
            labels = y[indices].to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch_device.autocast(torch, arguments):
                scores = model(inputs)
                loss = loss_of(scores, labels)
            loss.backward()
            optimizer.step()
            total_loss += loss.detach() * len(labels)
            correct += (scores.detach().argmax(1) == labels).sum()
        float(total_loss), int(correct)
        if epoch > 0:
            seconds.append(time.perf_counter() - begin)
            cpu_seconds.append(time.process_time() - cpu_begin)
    name = torch_device.name_of(torch, arguments)
    print(json.dumps({"name": name, "seconds": seconds, "cpu_seconds": cpu_seconds}))


if __name__ == "__main__":
    main()
