# SPDX-License-Identifier: Apache-2.0
"""Post-training quantisation: ONNX files whose products are computed with integers of 8 bits, or whose weights have 8 or 4 bits."""
import json
import os
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ._context import Context
from ._data import Arrays, Data, named_tensors
from ._errors import InvalidArgumentError
from ._library import PathLike, encoded, handles, json_of, lib, path_of, plain, texts
from ._model import Model
from ._onnx import OnnxModel
from ._tensor import Tensor, TensorLike, asarray

ModelLike = Union[Model, OnnxModel, PathLike, bytes]


def _opened(model: ModelLike, context: Optional[Context], folder: str) -> OnnxModel:
    """The model as one of an ONNX file, which a Model is exported to."""
    if isinstance(model, OnnxModel):
        return model
    if isinstance(model, Model):
        path = os.path.join(folder, "model.onnx")
        model.export(path)
        return OnnxModel(path, context=context or model.context)
    return OnnxModel(model, context=context)


def _samples(model: OnnxModel, data: Any, count: Optional[int]) -> Tuple[List[str], List[Tensor]]:
    """Inputs by name, of arrays or of the first samples of tenon.Data."""
    if isinstance(data, Data):
        size = data.info["size"]
        if size is None:
            raise InvalidArgumentError("data: expected arrays or numbered samples, got batches")
        data, _ = data.gather(range(min(int(size), count or 128)))
    names, tensors = named_tensors(data)
    if not tensors or any(0 in each.shape[:1] for each in tensors):
        raise InvalidArgumentError("data: expected at least one input with samples, got none")
    if count is not None:
        tensors = [each[:count] for each in tensors]
    if len(tensors) == 1 and len(model.input_names) == 1:
        names = model.input_names
    return names, tensors


def quantize(model: ModelLike, data: Union[Arrays, Data], path: PathLike, *, samples: Optional[int] = None, calibration: str = "minmax",
             percentile: Optional[float] = None, activations: str = "u8", weights_only_bits: int = 0, block_size: Optional[int] = None,
             exclude: Sequence[str] = (), op_types: Sequence[str] = (), batch_size: int = 32, fixed_batch: int = 0, opset: Optional[int] = None,
             context: Optional[Context] = None) -> Dict[str, Any]:
    """Writes the quantised form of a model as an ONNX file, and returns what became of its nodes: {"samples", "nodes", "activations"}.

    model              a Model, an OnnxModel, or a file or the bytes of an ONNX model.
    data               samples on which the ranges of activations are observed: an array, a dict of arrays by name, or tenon.Data.
    samples            how many of them; None: all of arrays, 128 of tenon.Data.
    calibration        how ranges follow from what was observed: "minmax", "percentile" or "entropy".
    percentile         of "percentile", such as 99.99.
    activations        "u8" with a zero point, or "i8" symmetric.
    weights_only_bits  8 or 4: weights alone are quantised; 0: activations, too.
    block_size         of weights of 4 bits: how many elements of a column share a scale.
    exclude            globs of nodes that stay in float32.
    op_types           operators that are quantised; none: those that are by default.
    fixed_batch        the batch size of the file; 0: any.

    Errors  InvalidArgumentError: an option outside its range; nothing to quantise; samples that do not fit.
    """
    options = {"calibration": calibration, "percentile": percentile, "activations": activations, "weights_only_bits": weights_only_bits,
               "block_size": block_size, "exclude": list(exclude), "op_types": list(op_types), "batch_size": batch_size, "fixed_batch": fixed_batch,
               "opset": opset}
    chosen = json.dumps(plain({key: value for key, value in options.items() if value is not None and value != []}))
    with tempfile.TemporaryDirectory() as folder:
        opened = _opened(model, context, folder)
        names, tensors = _samples(opened, data, samples)
        return dict(json_of(lib.tenon_onnx_quantize, opened.handle, texts(names), handles([*tensors]), len(tensors), path_of(path), encoded(chosen)))


def compare(expected: ModelLike, model: ModelLike, data: Union[Arrays, Data], labels: Optional[TensorLike] = None, *, samples: Optional[int] = None,
            batch_size: int = 32, context: Optional[Context] = None) -> Dict[str, Any]:
    """How far the outputs of a model are from those of another one with the same inputs, over samples.

    {"samples", "largest_difference", "rms_difference", "same_class", "expected_accuracy", "accuracy"}: differences are relative to the
    finite expected elements, and None if an element is NaN, or infinite in one of the models; the others are from 0 to 1, and None without classes
    or labels.
    labels  int64 (samples): the class of each sample.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        one, other = _opened(expected, context, first), _opened(model, context, second)
        names, tensors = _samples(one, data, samples)
        classes = None if labels is None else asarray(labels, "int64")
        return dict(json_of(lib.tenon_onnx_compare, one.handle, other.handle, texts(names), handles([*tensors]), len(tensors),
                            None if classes is None else classes.handle, batch_size))


__all__ = ["compare", "quantize"]
