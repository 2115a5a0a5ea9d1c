#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the models of docs/onnx.md's comparison of speed to ONNX files: models of torchvision and a BERT encoder, with random weights.

Usage: export_models.py [--out DIR] [--models NAME,...]

`tenon bench FILE.onnx --compare onnxruntime,openvino` measures the files, `tenon quantize` writes them with 8 bits. Images have 3x224x224
elements and any batch size; the encoder has 6 layers of width 384 with 12 heads, and one sequence of 128 tokens. Needs packages from
PyPI (exit code 77: one of them is missing):

    torch torchvision transformers onnx
"""
import argparse
import pathlib
import sys
import warnings

try:
    import onnx
    import torch
    import torchvision
    import transformers
    from torch_models import WithoutCache, take_statistics
except ImportError as error:
    print(f"skipped: {error}; pip install torch torchvision transformers onnx")
    sys.exit(77)

VISION = ["resnet50", "vgg16", "alexnet", "mobilenet_v2", "efficientnet_b0", "vit_b_16"]


def export(module, inputs, file, names, **options):
    # The exporter by TorchScript writes what most published files consist of: small ops instead of functions.
    torch.onnx.export(module, inputs, file, input_names=names, output_names=["y"], dynamo=False, **options)


def export_vision(name, file):
    module = torchvision.models.get_model(name, weights=None).eval()
    images = torch.rand(2, 3, 224, 224) * 2 - 1
    take_statistics(module, (images,))
    export(module, (images,), file, ["x"], dynamic_axes={"x": {0: "batch"}})


def export_encoder(file):
    """The states of the last layer of a BERT."""
    module = WithoutCache(transformers.BertModel(transformers.BertConfig(
        vocab_size=1000, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        attn_implementation="eager"))).eval()
    tokens = torch.randint(1, 1000, (1, 128))
    export(module, (tokens, torch.ones_like(tokens)), file, ["input_ids", "attention_mask"])


def main():
    known = [*VISION, "encoder"]
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".", type=pathlib.Path, help="the folder of the files (default: this one)")
    parser.add_argument("--models", default=",".join(known), help="which models (default: all)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.models.split(","):
        if name not in known:
            parser.error(f"--models: expected some of {', '.join(known)}, got {name}")
        torch.manual_seed(0)
        file = arguments.out / f"{name}.onnx"
        if name == "encoder":
            export_encoder(file)
        else:
            export_vision(name, file)
        graph = onnx.load(file).graph
        kinds = len({node.op_type for node in graph.node})
        print(f"{file}: {file.stat().st_size} bytes, {len(graph.node)} nodes of {kinds} ops", flush=True)


if __name__ == "__main__":
    main()
