# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch with random weights, made ready for export; also for tests/onnx."""
import torch


def take_statistics(module, arguments):
    """Gives batch norms the statistics of these inputs, without which the signal of deep networks dies away."""
    norms = [part for part in module.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train().momentum = 1.0
    with torch.no_grad():
        module(*arguments)
    for norm, momentum in zip(norms, momenta):
        norm.eval().momentum = momentum


class WithoutCache(torch.nn.Module):
    """The first result of a model of `transformers` for tokens and their mask."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
