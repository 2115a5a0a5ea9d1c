# SPDX-License-Identifier: Apache-2.0
"""Tenon, a plugin-based deep learning runtime.

    import tenon
    model = tenon.Sequential([tenon.layers.Dense(128, activation="relu"), tenon.layers.Dense(10)])
    model.compile(optimizer="adam", loss={"name": "sparse_categorical_crossentropy", "from_logits": True}, metrics=["accuracy"])
    model.fit(x, y, epochs=5)

Arrays of NumPy, PyTorch and JAX, and all that has DLPack or the buffer protocol, are accepted where a tensor is, without a copy.
docs/python.md is the guide.
"""
from . import backends
from ._context import Context, Device, default_context, device, devices, set_default_context
from ._errors import (CancelledError, DeviceLostError, DeviceNotFoundError, Error, ForkedError, IncompatibleError, InternalError,
                      InvalidArgumentError, NotReadyError, OutOfMemoryError, TraceError, UnsupportedError, VendorError)
from ._library import live_objects, version
from ._session import InferenceSession, IOBinding, ModelMetadata, NodeArg, SessionOptions, get_available_providers
from ._tensor import Tensor, arange, asarray, empty, equal, from_dlpack, full, ones, stack, tensor, zeros
from ._dtypes import (DType, bfloat16, bool_, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32,
                      uint64)
from . import callbacks, datasets, initializers, layers, log, losses, metrics, ops, optimizers, schedules
from ._data import Data
from ._explanation import Explanation, explain
from ._function import Function, function
from ._gradient import grad, stop_gradient, value_and_grad
from ._history import History
from ._model import Model, Sequential, load
from ._onnx import OnnxModel
from ._program import Program
from .backends import doctor
from . import nn, random

__version__ = version()

for _public in list(globals().values()):
    if isinstance(_public, type) and _public.__module__.startswith("tenon._"):
        _public.__module__ = "tenon"
del _public
